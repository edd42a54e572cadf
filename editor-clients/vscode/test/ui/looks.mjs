// The view in other colours, by the keyboard alone, and with a long session in it.
import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";

import { until } from "../workbench.mjs";
import { isAtEnd } from "./reading.mjs";

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
    const messages = Array.from({ length: 500 }, (_, index) => ({
      role: index % 2 === 0 ? "user" : "assistant",
      content: `message ${index + 1}\n\n${"```py\nx = 1\n```\n".repeat(index % 3)}`,
    }));
    const path = `${ui.bench.out}/tiro/sessions/long.json`;
    writeFileSync(path, JSON.stringify({ id: "long", messages, timestamp: "2025-02-21T14:30:15-0800" }));
    await ui.command("Tiro: Load Session");
    await ui.pick("long");
    await ui.answers.last().filter({ hasText: "message 500" }).waitFor();
    const transcript = ui.view.locator("#transcript");
    const { moved, most, slowest } = await transcript.evaluate(scrollToFirst);
    console.log(`   ${most} items on the page at most, ${slowest} ms the slowest frame`);
    assert.ok(most <= 160, `${most} items were on the page`);
    assert.deepEqual(moved, [], "the reader was moved");
    assert.equal(await ui.view.getByRole("button", { name: "Show Earlier Messages" }).isVisible(), false);
    await ui.view.getByText("message 1", { exact: true }).waitFor();
    await ui.view.getByRole("button", { name: "Jump to the End" }).click();
    await ui.answers.last().filter({ hasText: "message 500" }).waitFor();
    await until(() => transcript.evaluate(isAtEnd), "the end is shown");
  },
};

/** Scroll up, frame by frame, until the first message is there; runs in the page. */
async function scrollToFirst(element) {
  const seen = () => {
    const top = element.getBoundingClientRect().top;
    return [...element.querySelectorAll(".item")].find((item) => item.getBoundingClientRect().bottom > top);
  };
  const frame = () => new Promise((resolve) => globalThis.requestAnimationFrame(resolve));
  const moved = [];
  let [most, slowest, last] = [0, 0, await frame()];
  for (let frames = 0; frames < 2_000 && !element.querySelector(".item")?.textContent.trim().endsWith("message 1"); frames += 1) {
    element.scrollTop -= 700;
    const [item, place] = [seen(), seen()?.getBoundingClientRect().top];
    const now = await frame();
    if (Math.abs(item.getBoundingClientRect().top - place) > 60) {
      moved.push(item.textContent);
    }
    most = Math.max(most, element.querySelectorAll(".item").length);
    slowest = Math.max(slowest, Math.round(now - last));
    last = now;
  }
  return { moved, most, slowest };
}
