// Questions whether a tool may run (P8, M5.6): where each is shown, how it is answered, reached and withdrawn.
import assert from "node:assert/strict";

export const QUESTIONS = {
  "the real server asks before a tool runs, and the answer holds (P8, M5.6)": async (ui) => {
    await ui.changeSettings({ "tiro.settings": { permission: { read: "ask" } } });
    const asks = "build wants to run read_file [read]";
    const status = ui.view.locator("details.tool .status");
    for (const [button, outcome] of [
      ["Reject", "rejected"],
      ["Allow Once", "done"],
    ]) {
      await ui.ask(`tool use: ${button}`);
      await ui.question(asks).waitFor();
      await ui.shot(`permission-${outcome}`);
      assert.deepEqual(await ui.view.locator("body").evaluate(cutOff), []);
      await ui.answer(asks, button);
      await ui.answered(`You said: tool use: ${button}`);
      assert.equal(await status.last().innerText(), outcome);
    }
    assert.equal(await ui.page.locator(".notification-toast").count(), 0, "it was asked twice");
  },

  "one key leads to a question, which takes the focus from nobody, and a rejection has a reason": async (ui) => {
    await ui.prompt.fill("tool use: by key");
    await ui.prompt.press("Enter");
    await ui.question("read_file").waitFor();
    await ui.prompt.pressSequentially("a draft");
    assert.equal(await ui.prompt.inputValue(), "a draft");
    await ui.view.locator("#urgent").filter({ hasText: "Tiro asks: build wants to run read_file" }).waitFor({ state: "attached" });
    const hasFocus = async () => (await ui.view.locator(".question:focus").count()) === 1;
    await ui.press("Control+Alt+Enter", hasFocus, "the question has the focus");
    await ui.view.locator(".question[data-calm]").waitFor();
    const reached = await ui.tab(5, (one) => one.textContent || one.tagName);
    assert.deepEqual(reached, ['{"path":"a.py"}', "Allow Once", "Allow for This Session", "Reject", "INPUT"]);
    await ui.page.keyboard.type("not that one");
    await ui.shot("question-reason");
    await ui.page.keyboard.press("Enter");
    await ui.answered("You said: tool use: by key");
    assert.match(JSON.stringify(ui.provider.requests.at(-1).messages.at(-1)), /not that one/);
    assert.equal(await ui.view.locator("#prompt:focus").count(), 1, "the focus is not back");
    await ui.prompt.fill("");
  },

  "a question that the view cannot show is a message, and moves with the view": async (ui) => {
    await ui.ask("tool use: out of sight");
    await ui.question("read_file").waitFor();
    await ui.hideView();
    const waits = ui.toast("Tiro (build) wants to run read_file [read]");
    for (const [name, comeBack] of [
      ["click", () => ui.statusBar.click()],
      ["command", () => ui.command("Tiro: Answer Question")],
      ["focus", () => ui.leaveAndComeBack()],
    ]) {
      await waits.waitFor();
      await ui.hideToasts();
      await ui.statusBar.filter({ hasText: "1 question" }).waitFor();
      await ui.shot(`question-out-of-sight-${name}`);
      await comeBack();
    }
    await waits.waitFor();
    await ui.openView();
    await ui.question("read_file").waitFor();
    await waits.waitFor({ state: "detached" });
    await ui.hideView();
    await waits.getByRole("button", { name: "Reject" }).click();
    await ui.openView();
    await ui.answered("You said: tool use: out of sight");
    assert.equal(await ui.question("read_file").count(), 0);
    await ui.statusBar.filter({ hasText: "echo" }).waitFor();
  },

  "a question that is withdrawn goes away, and one that was answered for the session is not asked again (B43)": async (ui) => {
    await ui.ask("tool use: withdrawn");
    await ui.question("read_file").waitFor();
    await ui.prompt.press("Escape");
    await ui.question("read_file").waitFor({ state: "detached" });
    await ui.idle();
    await ui.ask("tool use: for the session");
    await ui.answer("without asking: read", "Allow for This Session");
    await ui.answered("You said: tool use: for the session");
    await ui.ask("tool use: not asked again");
    await ui.answered("You said: tool use: not asked again");
    assert.equal(await ui.page.locator(".notification-toast").count(), 0);
    await ui.changeSettings({ "tiro.settings": {} });
  },
};

/** In the page: the buttons and inputs that cannot be seen whole where the view is narrow and low. */
function cutOff(body) {
  Object.assign(body.style, { width: "170px", height: "380px" });
  const controls = [...body.querySelectorAll("#bar button, #state button, .answers button, .answers input")];
  const cut = controls.filter((one) => {
    const { left, right, top, bottom, width } = one.getBoundingClientRect();
    const isShortened = one.tagName === "BUTTON" && one.scrollWidth > one.clientWidth + 1;
    return width > 0 && (left < 0 || right > 170 || top < 0 || bottom > 380 || isShortened);
  });
  const names = cut.map((one) => one.textContent || one.tagName);
  Object.assign(body.style, { width: "", height: "" });
  return names;
}
