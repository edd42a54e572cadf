// An answer: how it comes, is stopped (B43), and what its Markdown, code, thinking and tools look like.
import assert from "node:assert/strict";
import { readFileSync, writeFileSync } from "node:fs";

import { A_PY, until } from "../workbench.mjs";

export const ANSWERS = {
  "the window opens, and the status bar says who would answer": async (ui) => {
    await ui.open();
    await ui.statusBar.filter({ hasText: "build" }).filter({ hasText: "echo" }).waitFor();
    await ui.serverPid();
  },

  "the view opens from the activity bar": async (ui) => {
    await ui.openView();
    await ui.view.getByText("Ask about your code").waitFor();
    assert.ok(await ui.view.getByRole("button", { name: "Send" }).isDisabled());
    await ui.shot("empty");
  },

  "an answer streams in while it arrives, and Escape stops it at its source (B43)": async (ui) => {
    await ui.ask("slow one");
    await ui.answers.last().filter({ hasText: "word3" }).waitFor();
    const early = (await ui.answers.last().innerText()).length;
    await ui.statusBar.filter({ has: ui.page.locator(".codicon-sync") }).waitFor();
    await ui.shot("streaming");
    await until(async () => (await ui.answers.last().innerText()).length > early, "the text grows");
    await ui.prompt.press("Escape");
    await ui.notices("Cancelled. What had arrived is kept.").waitFor();
    await ui.answers.last().getByText("Interrupted").waitFor();
    await until(() => ui.provider.slow.at(-1).isLeft, "the provider is not listened to any more");
  },

  "Cancel is a button, too, and what it stopped is followed by a new answer (B43)": async (ui) => {
    await ui.ask("slow two");
    await ui.answers.last().filter({ hasText: "word2" }).waitFor();
    await ui.view.getByRole("button", { name: "Cancel" }).click();
    await until(async () => (await ui.notices("Cancelled.").count()) === 2, "it is cancelled");
    await ui.ask("hello there");
    await ui.answered("You said: hello there");
  },

  "Markdown is shown as it is meant, and markup of the model is text": async (ui) => {
    await ui.ask("markdown please");
    const answer = await ui.answered("the documentation");
    assert.equal(await answer.locator("pre code").innerText(), A_PY.split("\n\n")[0]);
    assert.equal(await answer.locator("ol > li ul > li").count(), 2);
    assert.equal(await answer.locator("tbody tr:first-child td.right").innerText(), "2");
    assert.equal(await answer.getByRole("checkbox", { name: "Done" }).isChecked(), true);
    assert.equal(await answer.locator("img").count(), 0);
    assert.equal(await answer.locator("a").getAttribute("href"), "https://example.org/docs");
    await answer.locator("pre code .hljs-keyword").first().waitFor();
    await ui.shot("markdown");
  },

  "a block of code is copied, inserted at the cursor, and applied after a look at the change": async (ui) => {
    const block = ui.answers.last().locator(".code");
    writeFileSync(`${ui.bench.out}/workspace/code.py`, `# first\n${A_PY.replace("hello", "bye")}`);
    await ui.openFile("code.py");
    await block.getByRole("button", { name: "Copy" }).click();
    await ui.view.locator("#live").filter({ hasText: "Copied" }).waitFor({ state: "attached" });
    await ui.editor.click();
    await ui.page.keyboard.press("Control+Home");
    await block.getByRole("button", { name: "Insert" }).click();
    await ui.editor.filter({ hasText: /hello/ }).waitFor();
    await ui.page.locator(".tab.active.dirty").waitFor();
    await ui.editor.click();
    await ui.page.keyboard.press("Control+Z");
    await ui.editor.filter({ hasNotText: /hello/ }).waitFor();
    await block.getByRole("button", { name: "Apply" }).press("Enter");
    await ui.page.locator(".editor.modified").getByText(/hello/).first().waitFor();
    await ui.shot("apply-code");
    await ui.page.getByRole("button", { name: /^Apply/ }).first().click();
    await ui.page.locator(".editor.modified").waitFor({ state: "detached" });
    await ui.editor.filter({ hasText: /hello/ }).filter({ hasText: /#.first/ }).filter({ hasNotText: /bye/ }).waitFor();
    await ui.save();
    assert.equal(readFileSync(`${ui.bench.out}/workspace/code.py`, "utf8"), `# first\n${A_PY}`);
  },

  "a block of code takes the place of what is selected, shown first, and one undo brings that back": async (ui) => {
    const block = ui.answers.last().locator(".code");
    const path = `${ui.bench.out}/workspace/code.py`;
    const before = readFileSync(path, "utf8");
    await ui.editor.click();
    await ui.page.keyboard.press("Control+Home");
    await ui.page.keyboard.press("Shift+End"); // "# first"
    await ui.view.getByRole("button", { name: "code.py:1" }).waitFor();
    await block.getByRole("button", { name: "Apply" }).press("Enter");
    await ui.page.locator(".editor.original").getByText(/#.first/).first().waitFor();
    await ui.page.locator(".editor.modified").filter({ hasText: /hello[^]*hello/ }).filter({ hasNotText: /#.first/ }).waitFor();
    await ui.shot("apply-code-to-selection");
    assert.equal(readFileSync(path, "utf8"), before);
    await ui.page.getByRole("button", { name: /^Apply/ }).first().click();
    await ui.page.locator(".editor.modified").waitFor({ state: "detached" });
    await ui.editor.filter({ hasText: /hello[^]*hello/ }).filter({ hasNotText: /#.first/ }).waitFor();
    await ui.save();
    assert.equal(readFileSync(path, "utf8"), before.replace("# first", A_PY.split("\n\n")[0]));
    await ui.editor.click();
    await ui.page.keyboard.press("Control+Z");
    await ui.editor.filter({ hasText: /#.first/ }).waitFor();
    await ui.save();
    assert.equal(readFileSync(path, "utf8"), before);
    await ui.closeEditors();
  },

  "thinking is folded, and a tool use is one line with its output below": async (ui) => {
    await ui.ask("think hard");
    await ui.answered("You said: think hard");
    const thinking = ui.view.locator("details.thinking").last();
    assert.equal(await thinking.locator(".plain").isVisible(), false);
    await thinking.locator("summary").click();
    await thinking.getByText("First I look at the question. Then I answer it.").waitFor();
    await ui.ask("tool use please");
    await ui.answered("You said: tool use please");
    const tool = ui.view.locator("details.tool").last();
    assert.match(await tool.locator("summary").innerText(), /read_file\s+a\.py\s+done/);
    await tool.locator("summary").click();
    await tool.getByText("def greet(name):").waitFor();
    await ui.shot("thinking-and-tool");
  },
};
