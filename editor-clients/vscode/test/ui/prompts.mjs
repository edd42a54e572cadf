// What a prompt brings: what goes along with it, and what is told when nothing comes of it.
import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";

export const PROMPTS = {
  "an empty answer is told (B36)": async (ui) => {
    await ui.ask("empty please");
    await ui.notices("The model gave an empty answer.").waitFor();
  },

  "a failure says what happened and offers help": async (ui) => {
    await ui.ask("refuse this");
    const notice = ui.alerts.last();
    await notice.filter({ hasText: "refused by the script" }).waitFor();
    await notice.getByRole("button", { name: "Select Model" }).waitFor();
    assert.equal(await ui.alerts.count(), 1, "the failure is told once");
    await ui.shot("failure");
  },

  "the selection goes along, and can be left out (P5)": async (ui) => {
    await ui.openFile("a.py");
    await ui.editor.click();
    await ui.page.keyboard.press("Control+Home");
    await ui.page.keyboard.press("Shift+ArrowDown");
    await ui.page.keyboard.press("Shift+End");
    const chip = ui.view.getByRole("button", { name: "a.py:1-2" });
    await chip.waitFor();
    await ui.ask("what is this?");
    await ui.answered("You said: what is this?");
    assert.match(lastMessage(ui), /hello, \{name\}/);
    await ui.prompts.last().getByText("a.py:1-2").waitFor();
    await ui.shot("selection");
    await chip.click();
    await ui.ask("and without?");
    await ui.answered("You said: and without?");
    assert.doesNotMatch(lastMessage(ui), /hello, \{name\}/);
  },

  "a file is attached by hand, once": async (ui) => {
    await ui.command("Tiro: Attach File");
    await ui.view.getByRole("button", { name: "Remove attachment a.py" }).waitFor();
    await ui.ask("with the file");
    await ui.answered("You said: with the file");
    assert.match(lastMessage(ui), /greet\(/);
    assert.equal(await ui.view.getByRole("button", { name: "Remove attachment a.py" }).count(), 0);
  },

  "a file is named with @, or dropped on the view, and its chip can be removed": async (ui) => {
    writeFileSync(`${ui.bench.out}/workspace/named.txt`, "the words of a named file\n");
    await ui.prompt.fill("");
    await ui.prompt.pressSequentially("what is in @NAM");
    await ui.chosen("named.txt").waitFor();
    await ui.shot("mention");
    await ui.prompt.press("Enter");
    assert.equal(await ui.prompt.inputValue(), "what is in named.txt ");
    const chip = ui.view.getByRole("button", { name: "Remove attachment named.txt" });
    await chip.click();
    await chip.waitFor({ state: "detached" });
    await ui.view.locator("#composer").evaluate(dropOn, `file://${ui.bench.out}/workspace/named.txt`);
    await chip.waitFor();
    await ui.prompt.press("Enter");
    await ui.answered("You said: what is in named.txt");
    assert.match(lastMessage(ui), /the words of a named file/);
    await ui.view.locator("#composer").evaluate(dropOn, `file://${ui.bench.out}/workspace`);
    await ui.toast("is not a file, so it is not attached").waitFor();
    await ui.dismissToasts();
  },

  "the problems of the active file are named with @problems": async (ui) => {
    writeFileSync(`${ui.bench.out}/workspace/broken.json`, '{"a": }\n');
    await ui.openFile("broken.json");
    await ui.page.locator(".squiggly-error").first().waitFor();
    await ui.prompt.pressSequentially("mend the @prob");
    await ui.chosen("problems of the active file").waitFor();
    await ui.shot("mention-problems");
    await ui.prompt.press("Tab");
    assert.equal(await ui.prompt.inputValue(), "mend the problems ");
    await ui.view.getByRole("button", { name: "Remove attachment problems of broken.json" }).waitFor();
    await ui.prompt.press("Enter");
    await ui.answered("You said: mend the problems");
    assert.match(lastMessage(ui), /1:7: error: Value expected/);
    await ui.prompts.last().getByText("problems of broken.json").waitFor();
    await ui.openFile("a.py");
  },

  "Ask works from the palette": async (ui) => {
    await ui.command("Tiro: Ask");
    await ui.fillIn("Ask Tiro", "from the palette");
    await ui.answered("You said: from the palette");
  },
};

/** What came last with the newest request. */
function lastMessage(ui) {
  return JSON.stringify(ui.provider.requests.at(-1).messages.at(-1));
}

/** Drop a file as the workbench does; runs in the page. */
function dropOn(element, uri) {
  const dataTransfer = new globalThis.DataTransfer();
  dataTransfer.setData("application/vnd.code.uri-list", uri);
  element.dispatchEvent(new globalThis.DragEvent("drop", { dataTransfer, bubbles: true, cancelable: true }));
}
