// The view in other colours, by the keyboard alone, and with a long session in it.
import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";

import { PATIENCE_MS, until } from "../workbench.mjs";
import { isAtEnd } from "./reading.mjs";
import { scrollToFirst, writeLongSession } from "./scrolling.mjs";

export const LOOKS = {
  "it can be read in a dark theme and in high contrast": async (ui) => {
    writeFileSync(`${ui.bench.out}/workspace/dark.txt`, "one\n");
    await ui.ask("markdown again");
    await ui.answered("the documentation");
    await ui.command("Tiro: Select Agent");
    await ui.pick("build");
    await ui.ask("edit dark.txt");
    await ui.question("+1 −1 lines in dark.txt").waitFor();
    for (const [name, theme, mark] of [
      ["dark", "Dark Modern", "vscode-dark"],
      ["high-contrast", "Dark High Contrast", "vscode-high-contrast"],
    ]) {
      await ui.command("Preferences: Color Theme");
      await ui.pick(theme, "Dark Modern");
      await ui.view.locator(`body.${mark}`).waitFor();
      await ui.prompt.fill("look at ");
      await ui.prompt.pressSequentially("@a");
      await ui.view.getByRole("option").first().waitFor();
      await ui.shot(name);
      await ui.prompt.press("Escape");
    }
    await ui.prompt.fill("");
    await ui.answer("dark.txt", "Allow Once");
    await ui.answered("You said: edit");
  },

  "all can be reached by the keyboard": async (ui) => {
    await ui.prompt.fill("a draft");
    await ui.prompt.focus();
    const reached = await ui.tab(5, (one) => one.id);
    assert.deepEqual(reached, ["attach", "agent", "model", "send", "tokens"]);
    await ui.prompt.focus();
    await until(async () => {
      await ui.page.keyboard.press("Shift+Tab");
      return (await ui.view.locator(":focus").getAttribute("id")) === "transcript";
    }, "the transcript has the focus");
    // What is further up is painted when it comes near, above what is seen.
    const isAtTop = () => ui.view.locator("#transcript").evaluate((one) => one.scrollTop === 0);
    await ui.press("Home", isAtTop, "the top is shown");
    await ui.prompt.fill("");
  },

  "a long session is shown from its end, and earlier messages come to a reader who scrolls up (P10)": async (ui) => {
    writeLongSession(ui.bench.out, 500);
    await ui.command("Tiro: Load Session");
    await ui.pick("long");
    await ui.answers.last().filter({ hasText: "message 500" }).waitFor();
    const transcript = ui.view.locator("#transcript");
    const { moved, most, slowest } = await transcript.evaluate(scrollToFirst, PATIENCE_MS);
    console.log(`   ${most} items on the page at most, ${slowest} ms the slowest frame`);
    assert.ok(most <= 160, `${most} items were on the page`);
    assert.deepEqual(moved, [], "the reader was moved");
    assert.equal(await ui.view.getByRole("button", { name: "Show Earlier Messages" }).isVisible(), false);
    await ui.view.getByText("message 1", { exact: true }).waitFor();
    await ui.view.getByRole("button", { name: "Jump to the End" }).click();
    await ui.answers.last().filter({ hasText: "message 500" }).waitFor();
    await until(() => transcript.evaluate(isAtEnd), "the end is shown");
  },

  "what a search found is gone to, on an earlier page of another session too": async (ui) => {
    await ui.command("Tiro: Clear Session");
    await ui.prompts.first().waitFor({ state: "detached" });
    await ui.command("Tiro: Search Sessions");
    await ui.page.locator(".quick-input-widget input").fill('"message 124"');
    await ui.page.keyboard.press("Enter");
    await ui.row("message 124").click();
    const found = ui.view.locator('.item[data-seq="124"]');
    await found.waitFor();
    await until(() => found.evaluate((one) => one === one.ownerDocument.activeElement), "it has the focus");
    await ui.shot("found");
    await ui.view.getByRole("button", { name: "Jump to the End" }).click();
    await ui.answers.last().filter({ hasText: "message 500" }).waitFor();
  },
};
