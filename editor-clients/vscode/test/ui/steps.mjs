// The steps of a user's day, in order.
import assert from "node:assert/strict";
import { readFileSync, writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { isDeepStrictEqual } from "node:util";

import { A_PY, SERVER_COMMAND, serverPids, until } from "../workbench.mjs";
import { HANDOFF } from "./handoff.mjs";

export const STEPS = {
  "the window opens, and the status bar says who would answer": async (ui) => {
    await ui.open();
    await ui.statusBar.filter({ hasText: "build" }).filter({ hasText: "echo" }).waitFor();
    assert.equal(serverPids(ui.bench.out).length, 1);
  },

  "the view opens from the activity bar": async (ui) => {
    await ui.openView();
    await ui.view.getByText("Ask about your code").waitFor();
    assert.ok(await ui.view.getByRole("button", { name: "Send" }).isDisabled());
    await ui.shot("empty");
  },

  "an answer streams in while it arrives, and Escape stops it": async (ui) => {
    await ui.ask("slow one");
    await ui.answers.last().filter({ hasText: "word3" }).waitFor();
    const early = (await ui.answers.last().innerText()).length;
    await ui.statusBar.filter({ has: ui.page.locator(".codicon-sync") }).waitFor();
    await ui.shot("streaming");
    await until(async () => (await ui.answers.last().innerText()).length > early, "the text grows");
    await ui.prompt.press("Escape");
    await ui.notices("Cancelled. What had arrived is kept.").waitFor();
    await ui.answers.last().getByText("Interrupted").waitFor();
    const text = await ui.answers.last().innerText();
    assert.ok(!text.includes("word199"), "the answer went on to its end");
  },

  "Cancel is a button, too, and what it stopped is followed by a new answer": async (ui) => {
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
    assert.equal(await answer.locator("pre code").innerText(), A_PY.split("\n\n")[0] + "\n");
    assert.equal(await answer.locator("ol > li").count() > 0, true);
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
    await ui.command("File: Save");
    await ui.page.locator(".tab.active:not(.dirty)").waitFor();
    assert.equal(readFileSync(`${ui.bench.out}/workspace/code.py`, "utf8"), `# first\n${A_PY}`);
    await ui.command("View: Close All Editors");
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

  "the real server asks before a tool runs, and the answer holds": async (ui) => {
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
      await ui.answer(asks, button);
      await ui.answered(`You said: tool use: ${button}`);
      assert.equal(await status.last().innerText(), outcome);
    }
    assert.equal(await ui.page.locator(".notification-toast").count(), 0, "it was asked twice");
  },

  "one key leads to a question, which takes the focus from nobody, and a rejection has a reason": async (ui) => {
    await ui.prompt.fill("half a thought");
    await ui.prompt.fill("tool use: by key");
    await ui.prompt.press("Enter");
    await ui.question("read_file").waitFor();
    await ui.prompt.pressSequentially("a draft");
    assert.equal(await ui.prompt.inputValue(), "a draft");
    await ui.view.locator("#urgent").filter({ hasText: "Tiro asks: build wants to run read_file" }).waitFor({ state: "attached" });
    await ui.page.keyboard.press("Control+Alt+Enter");
    await until(async () => (await ui.view.locator(".question:focus").count()) === 1, "the question has the focus");
    await ui.view.locator(".question[data-calm]").waitFor();
    const reached = [];
    for (let presses = 0; presses < 5; presses += 1) {
      await ui.page.keyboard.press("Tab");
      reached.push(await ui.view.locator(":focus").evaluate((one) => one.textContent || one.tagName));
    }
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

  "a question that is withdrawn goes away, and one that was answered for the session is not asked again": async (ui) => {
    await ui.ask("tool use: withdrawn");
    await ui.question("read_file").waitFor();
    await ui.prompt.press("Escape");
    await ui.question("read_file").waitFor({ state: "detached" });
    await ui.idle();
    await ui.ask("tool use: for the session");
    await ui.answer("adds read", "Allow for This Session");
    await ui.answered("You said: tool use: for the session");
    await ui.ask("tool use: not asked again");
    await ui.answered("You said: tool use: not asked again");
    assert.equal(await ui.page.locator(".notification-toast").count(), 0);
    await ui.changeSettings({ "tiro.settings": {} });
  },

  "a turn's edits are shown as diffs, made in open editors, undone and redone": async (ui) => {
    const { disk, change } = editedFiles(ui.bench.out);
    const before = disk();
    await ui.openFile("b.txt");
    await ui.typeAtEnd("typed");
    for (const name of ["c.txt", "a.txt"]) {
      await ui.openFile(name);
    }
    await ui.ask("edit a.txt b.txt c.txt d.txt e.txt");
    await ui.question("+1 −1 lines in a.txt").waitFor();
    await ui.shot("diff-in-view");
    await ui.answer("+1 −1 lines in a.txt", "Show Diff");
    await ui.page.locator(".editor.modified").getByText(/ONE/).waitFor();
    await ui.shot("diff");
    for (const name of ["a.txt", "b.txt", "c.txt", "d.txt", "e.txt"]) {
      await ui.answer(`+1 −1 lines in ${name}`, "Allow Once");
    }
    await ui.answered("You said: edit");
    const after = change(before, "a.txt", "c.txt", "d.txt", "e.txt");
    assert.deepEqual(disk(), after);
    await ui.page.locator(".editor.modified").waitFor({ state: "detached" });
    await ui.command("Tiro: Undo Edits");
    await ui.toast(/Took back the changes of .*a\.txt/).waitFor();
    assert.deepEqual(disk(), before);
    await ui.shot("undone");
    await ui.command("Tiro: Redo Edits");
    await ui.toast(/Made again the changes of .*a\.txt/).waitFor();
    assert.deepEqual(disk(), after);
    await ui.dismissToasts();
    for (const [name, typed] of [["a.txt", ""], ["c.txt", ""], ["b.txt", "typed"]]) {
      await ui.page.locator(`.tab[aria-label^="${name}"]`).first().click();
      await ui.editor.filter({ hasText: /ONE/ }).filter({ hasText: typed }).waitFor();
      await ui.editor.click();
      await ui.page.keyboard.press("Control+Z");
      await ui.editor.filter({ hasText: /one/ }).filter({ hasText: typed }).waitFor();
      await ui.command("File: Save");
      await ui.page.locator(".tab.active:not(.dirty)").waitFor();
    }
    const saved = { ...after, "a.txt": before["a.txt"], "c.txt": before["c.txt"], "b.txt": "one b\ntyped" };
    await until(() => isDeepStrictEqual(disk(), saved), "one step a file was undone");
    await ui.command("View: Close All Editors");
  },

  "a turn of edits that is cancelled in the middle is undone as far as it came": async (ui) => {
    const { disk, change } = editedFiles(ui.bench.out, "again-");
    const before = disk();
    await ui.ask("edit again-a.txt again-d.txt again-e.txt");
    for (const name of ["again-a.txt", "again-d.txt"]) {
      await ui.answer(`+1 −1 lines in ${name}`, "Allow Once");
    }
    await ui.question("+1 −1 lines in again-e.txt").waitFor();
    await ui.view.getByRole("button", { name: "Cancel" }).click();
    await ui.idle();
    const after = change(before, "a.txt", "d.txt");
    assert.deepEqual(disk(), after);
    for (const [title, told, state] of [["Undo", "Took back", before], ["Redo", "Made again", after]]) {
      await ui.command(`Tiro: ${title} Edits`);
      await ui.toast(new RegExp(`${told} the changes of .*again-a\\.txt`)).waitFor();
      assert.deepEqual(disk(), state);
    }
    await ui.dismissToasts();
  },

  "an empty answer is told": async (ui) => {
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

  "the selection goes along, and can be left out": async (ui) => {
    await ui.openFile("a.py");
    await ui.page.locator(".editor-instance .view-lines").first().click();
    await ui.page.keyboard.press("Control+Home");
    await ui.page.keyboard.press("Shift+ArrowDown");
    await ui.page.keyboard.press("Shift+End");
    const chip = ui.view.getByRole("button", { name: "a.py:1-2" });
    await chip.waitFor();
    await ui.ask("what is this?");
    await ui.answered("You said: what is this?");
    assert.match(JSON.stringify(ui.provider.requests.at(-1).messages.at(-1)), /hello, \{name\}/);
    await ui.prompts.last().getByText("a.py:1-2").waitFor();
    await ui.shot("selection");
    await chip.click();
    await ui.ask("and without?");
    await ui.answered("You said: and without?");
    assert.doesNotMatch(JSON.stringify(ui.provider.requests.at(-1).messages.at(-1)), /hello, \{name\}/);
  },

  "a file is attached by hand, once": async (ui) => {
    await ui.command("Tiro: Attach File");
    await ui.view.getByRole("button", { name: "Remove attachment a.py" }).waitFor();
    await ui.ask("with the file");
    await ui.answered("You said: with the file");
    assert.match(JSON.stringify(ui.provider.requests.at(-1).messages.at(-1)), /greet\(/);
    assert.equal(await ui.view.getByRole("button", { name: "Remove attachment a.py" }).count(), 0);
  },

  "a file is named with @, or dropped on the view, and its chip can be removed": async (ui) => {
    writeFileSync(`${ui.bench.out}/workspace/named.txt`, "the words of a named file\n");
    await ui.prompt.fill("");
    await ui.prompt.pressSequentially("what is in @NAM");
    const row = ui.view.getByRole("option", { name: "named.txt" });
    await row.waitFor();
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
    assert.match(JSON.stringify(ui.provider.requests.at(-1).messages.at(-1)), /the words of a named file/);
    await ui.view.locator("#composer").evaluate(dropOn, `file://${ui.bench.out}/workspace`);
    await ui.toast("is not a file, so it is not attached").waitFor();
    await ui.dismissToasts();
  },

  "Ask works from the palette": async (ui) => {
    await ui.command("Tiro: Ask");
    await ui.page.locator(".quick-input-widget input").fill("from the palette");
    await ui.page.keyboard.press("Enter");
    await ui.answered("You said: from the palette");
  },

  "Show Session opens the exact text, read-only": async (ui) => {
    await ui.command("Tiro: Show Session");
    const editor = ui.page.locator(".editor-instance").last();
    await editor.getByText("Session Summary:").waitFor();
    await editor.getByText("[USER] from the palette").waitFor();
    await editor.getByText("[ASSISTANT] You said: from the palette").waitFor();
    await ui.shot("show-session");
    await ui.page.keyboard.type("x");
    await ui.page.getByText("Cannot edit in read-only editor").first().waitFor();
  },

  "Context Size says what the next request takes": async (ui) => {
    await ui.command("Tiro: Context Size");
    await ui.page.getByText(/The next request: about [\d,]+ of 8,192 tokens/).first().waitFor();
    await ui.row(/System prompt\s*[\d,]+ tokens · \d+ %/).waitFor();
    await ui.shot("context-size");
    await ui.row("Preview Resize").waitFor();
    await ui.page.keyboard.press("Escape");
  },

  "a message has a menu, earlier prompts come back, and Enter steers a running answer": async (ui) => {
    await ui.chooseFor(ui.answers.last(), "Pin Message");
    await ui.view.locator(".item.text.pinned").waitFor();
    await ui.shot("pinned");
    await ui.chooseFor(ui.answers.last(), "Unpin Message");
    await until(async () => (await ui.view.locator(".pinned").count()) === 0, "it is not pinned any more");
    await ui.prompt.press("ArrowUp");
    assert.equal(await ui.prompt.inputValue(), "from the palette");
    await ui.prompt.press("ArrowDown");
    await ui.prompt.fill("");
    await ui.ask("slow words");
    await ui.answers.last().filter({ hasText: "word3" }).waitFor();
    await ui.send("number it");
    await ui.command("Tiro: Context Size"); // the server is asked for it after it was told
    await ui.row(/System prompt/).waitFor();
    await ui.page.keyboard.press("Escape");
    ui.provider.finish();
    const before = await (await ui.answered("This is request")).innerText();
    await ui.chooseFor(ui.answers.last(), "Retry");
    await ui.answers.last().filter({ hasText: "This is request", hasNotText: before }).waitFor();
    await ui.idle();
    await ui.chooseFor(ui.prompts.last(), "Edit Message");
    await ui.page.locator('.tab.active[aria-label^="message.md"]').waitFor();
    await ui.editor.filter({ hasText: /^number.it$/ }).waitFor();
    await ui.typeAtEnd(" and clear");
    await ui.editor.filter({ hasText: /and.clear/ }).waitFor();
    await ui.page.keyboard.press("Control+Enter");
    await ui.prompts.last().filter({ hasText: "number it and clear" }).waitFor();
    await ui.page.locator('.tab[aria-label^="message.md"]').waitFor({ state: "detached" });
  },

  "a resize is looked at, edited, applied and undone": async (ui) => {
    await ui.changeSettings({ "tiro.settings": { session: { resize: { max_keep_messages_count: 4 } } } });
    await ui.command("Tiro: Preview Resize");
    await ui.editor.filter({ hasText: /of\s\d+\smessages|messages\sof/ }).waitFor();
    await ui.shot("resize-preview");
    await ui.page.locator(".view-line").filter({ hasText: /^##.Summary$/ }).click();
    await ui.page.keyboard.press("End");
    await ui.page.keyboard.type("\nThey talked of greetings.");
    await ui.page.getByRole("button", { name: /^Apply/ }).first().click();
    await ui.notices(/messages left the window; [\d,]+ tokens become about [\d,]+/).waitFor();
    await ui.command("Tiro: Edit Memo and Summary");
    await ui.editor.filter({ hasText: /They\stalked\sof\sgreetings/ }).waitFor();
    await ui.dropForm("memory.md");
    await ui.changeSettings({ "tiro.settings": {} });
    await ui.notices(/messages left the window/).getByRole("button", { name: "Undo" }).click();
    await ui.notices("those of before the last resize").waitFor();
    await ui.shot("resize-undone");
  },

  "an agent is selected and shown": async (ui) => {
    await ui.command("Tiro: Select Agent");
    await ui.row("build").waitFor();
    await ui.shot("select-agent");
    await ui.pick("plan");
    await ui.statusBar.filter({ hasText: "plan" }).waitFor();
    await ui.command("Tiro: Show Current Agent");
    await ui.toast("The agent is plan").waitFor();
    await ui.dismissToasts();
  },

  "a model is selected": async (ui) => {
    await ui.command("Tiro: Select Model");
    await ui.row("scripted/other").waitFor();
    await ui.shot("select-model");
    await ui.pick("scripted/other");
    await ui.statusBar.filter({ hasText: "other" }).waitFor();
    await ui.ask("who are you?");
    await ui.answered("You said: who are you?");
    assert.equal(ui.provider.requests.at(-1).model, "other");
  },

  "the status bar opens the menu": async (ui) => {
    await ui.statusBar.click();
    await ui.row("Show Session").waitFor();
    await ui.shot("menu");
    await ui.page.keyboard.press("Escape");
  },

  "Save Session says where, Clear Session empties the view": async (ui) => {
    await ui.command("Tiro: Save Session");
    const toast = ui.toast("Saved as");
    await toast.waitFor();
    const [, path] = /Saved as (\S+\.json)/.exec(await toast.innerText());
    const { messages } = JSON.parse(readFileSync(path, "utf8"));
    assert.equal(messages.at(-1).role, "assistant");
    await ui.dismissToasts();
    await ui.command("Tiro: Clear Session");
    await ui.view.getByText("Ask about your code").waitFor();
    await ui.toast("The session is cleared").waitFor();
    assert.equal(await ui.view.locator(".item").count(), 0);
    await ui.dismissToasts();
    await ui.ask("in the new session");
    await ui.answered("You said: in the new session");
    await ui.command("Tiro: New Session");
    await ui.view.getByText("Ask about your code").waitFor();
  },

  "Load Session offers the saved ones, newest first": async (ui) => {
    await ui.command("Tiro: Load Session");
    await ui.row("slow one").waitFor();
    await ui.shot("load-session");
    const first = await ui.page.locator(".quick-input-list .monaco-list-row").first().innerText();
    assert.match(first, /in the new session/);
    await ui.pick("slow one");
    await ui.titled("slow one").waitFor();
    await ui.answers.last().filter({ hasText: "You said: who are you?" }).waitFor();
    await ui.statusBar.filter({ hasText: "plan" }).waitFor();
    await ui.shot("loaded");
  },

  "the sessions are a tree: opened by a click, deleted after a question": async (ui) => {
    await ui.page.getByRole("button", { name: "Sessions Section" }).click();
    const rows = ui.page.locator(".tree-explorer-viewlet-tree-view .monaco-list-row");
    const row = (text) => rows.filter({ hasText: text }).first();
    await row("in the new session").click();
    await ui.answers.last().filter({ hasText: "You said: in the new session" }).waitFor();
    const isCurrent = (text) => ui.page.getByRole("treeitem", { name: `Current session ${text}` }).waitFor();
    await isCurrent("in the new session");
    await ui.shot("sessions");
    await row("slow one").click();
    await ui.titled("slow one").waitFor();
    await isCurrent("slow one");
    await row("in the new session").hover();
    await row("in the new session").getByRole("button", { name: "Delete Session" }).click();
    await ui.page.locator(".monaco-dialog-box").getByRole("button", { name: "Delete" }).click();
    await until(async () => (await rows.filter({ hasText: "in the new session" }).count()) === 0, "it is gone");
    await ui.page.getByRole("button", { name: "Sessions Section" }).click();
  },

  "a reader who scrolled up stays there, one at the end is taken along": async (ui) => {
    const transcript = ui.view.locator("#transcript");
    await ui.ask("slow three");
    await ui.answers.last().filter({ hasText: "word5" }).waitFor();
    await transcript.evaluate((element) => (element.scrollTop = 40));
    const follow = ui.view.getByRole("button", { name: "Jump to the End" });
    await follow.waitFor();
    const top = await transcript.evaluate(topItem);
    const length = (await ui.answers.last().textContent()).length;
    await until(async () => (await ui.answers.last().textContent()).length > length + 50, "more arrives");
    assert.deepEqual(await transcript.evaluate(topItem), top);
    await ui.shot("scrolled-up");
    await follow.click();
    await until(() => transcript.evaluate(isAtEnd), "the end is shown");
    const later = (await ui.answers.last().textContent()).length;
    await until(async () => (await ui.answers.last().textContent()).length > later + 50, "more arrives");
    assert.ok(await transcript.evaluate(isAtEnd), "the reader at the end was left behind");
  },

  "a view that was hidden in mid-answer comes back whole, with the draft": async (ui) => {
    await ui.prompt.fill("half a thought");
    await ui.hideView();
    await ui.page.getByRole("tab", { name: "Tiro" }).first().click();
    await ui.answers.last().filter({ hasText: "word5" }).waitFor();
    assert.equal(await ui.prompt.inputValue(), "half a thought");
    ui.provider.finish();
    await ui.answered("word199");
    const text = await ui.answers.last().textContent();
    const words = [...text.matchAll(/word(\d+)/g)].map(([, number]) => Number(number));
    assert.deepEqual(words, Array.from(words, (_, index) => index));
    await ui.prompt.fill("");
  },

  "a killed server is told once; after a restart all that was acknowledged is there": async (ui) => {
    await ui.ask("slow four");
    await ui.answers.last().filter({ hasText: "word5" }).waitFor();
    const starts = ui.serverStarts();
    const [pid] = serverPids(ui.bench.out);
    process.kill(pid, "SIGKILL");
    const toast = ui.toast("The Tiro server stopped (signal SIGKILL)");
    await toast.waitFor();
    await ui.statusBar.filter({ hasText: "stopped" }).waitFor();
    assert.equal(await ui.page.locator(".notification-toast").count(), 1);
    await ui.shot("killed");
    await toast.getByRole("button", { name: "Restart" }).click();
    await ui.statusBar.filter({ hasText: "plan" }).waitFor();
    await ui.prompts.last().filter({ hasText: "slow four" }).waitFor();
    await ui.ask("still there?");
    await ui.answered("You said: still there?");
    assert.equal(ui.serverStarts(), starts + 1, "it was started again without being asked");
  },

  "the window is reloaded, and the chat is still there": async (ui) => {
    await ui.command("Developer: Reload Window");
    await ui.page.waitForEvent("load");
    await ui.ready();
    await until(() => serverPids(ui.bench.out).length === 1, "the old window's server has ended");
    await ui.prompt.waitFor();
    await ui.answers.last().filter({ hasText: "You said: still there?" }).waitFor();
    await ui.statusBar.filter({ hasText: "plan" }).waitFor();
    await ui.ask("after the reload");
    await ui.answered("You said: after the reload");
    await ui.shot("reloaded");
  },

  "a server that cannot be started is told once, with what to do": async (ui) => {
    await ui.changeSettings({ "tiro.server.command": ["/nowhere/tiro", "serve"] });
    await ui.command("Tiro: Restart Server");
    await ui.toast("/nowhere/tiro").waitFor();
    await ui.shot("missing-server");
    await ui.send("anybody there?");
    const notice = ui.alerts.last();
    await notice.filter({ hasText: "The Tiro server is not running" }).waitFor();
    assert.equal(await ui.page.locator(".notification-toast").count(), 1);
    assert.equal(await ui.prompt.inputValue(), "anybody there?", "the prompt is lost");
    await ui.changeSettings({ "tiro.server.command": SERVER_COMMAND });
    await notice.getByRole("button", { name: "Restart" }).click();
    await ui.answers.last().filter({ hasText: "You said: after the reload" }).waitFor();
    await ui.prompt.press("Enter");
    await ui.answered("You said: anybody there?");
    await ui.prompts.last().filter({ hasText: "anybody there?" }).waitFor();
    await ui.dismissToasts();
  },

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
    const reached = [];
    for (let presses = 0; presses < 5; presses += 1) {
      await ui.page.keyboard.press("Tab");
      reached.push(await ui.view.locator(":focus").getAttribute("id"));
    }
    assert.deepEqual(reached, ["attach", "agent", "model", "send", "tokens"]);
    await ui.prompt.focus();
    for (let presses = 0; presses < 60; presses += 1) {
      await ui.page.keyboard.press("Shift+Tab");
      if ((await ui.view.locator(":focus").getAttribute("id")) === "transcript") {
        break;
      }
    }
    await ui.page.keyboard.press("Home");
    await until(() => ui.view.locator("#transcript").evaluate((one) => one.scrollTop === 0), "it scrolls");
    await ui.prompt.fill("");
  },

  "a long session is shown from its end, and earlier messages come to a reader who scrolls up": async (ui) => {
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

  ...HANDOFF,

  "progress is shown while it lasts": async (ui) => {
    const peer = fileURLToPath(new URL("../peer.mjs", import.meta.url));
    await ui.changeSettings({ "tiro.server.command": [process.execPath, peer] });
    await ui.command("Tiro: Restart Server");
    await ui.statusBar.filter({ hasText: "model" }).waitFor();
    await ui.ask("progress please");
    const activity = ui.view.locator("#activity");
    await activity.filter({ hasText: "Loading the model · 3 of 9 files · 33 %" }).waitFor();
    await ui.shot("progress");
    await ui.prompt.press("Escape");
    await ui.answers.last().filter({ hasText: "Loaded." }).waitFor();
    await until(async () => (await activity.textContent()) === "", "the progress is over");
  },

  "a save that fails is told, and when it works again": async (ui) => {
    await ui.ask("changed please");
    await ui.notices("The session cannot be saved.").waitFor();
    await ui.notices("The session is saved again.").waitFor();
    assert.equal(await ui.page.locator(".notification-toast").count(), 0);
  },

  "a flood of text is shown whole, and the window stays awake": async (ui) => {
    await ui.ask("flood please");
    await ui.answered("The end.");
    const words = [...(await ui.answers.last().textContent()).matchAll(/n(\d+) /g)];
    assert.equal(words.length, 2_000);
  },

  "nothing left the machine, and the page broke none of its rules": (ui) => {
    assert.deepEqual([...ui.foreignHosts], []);
    assert.deepEqual(ui.complaints, []);
  },
};

/** Five files of several encodings; what the disk holds, and what it holds after edits, as latin-1. */
function editedFiles(out, prefix = "") {
  const files = {
    "a.txt": Buffer.from("one a\n"),
    "b.txt": Buffer.from("one b\n"),
    "c.txt": Buffer.from("c one c\r\nzwei é\r\n"),
    "d.txt": Buffer.from("one é d\r\nlast", "latin1"),
    "e.txt": Buffer.from("\uFEFFe\none 😀 e\n", "utf16le"),
  };
  const path = (name) => `${out}/workspace/${prefix}${name}`;
  for (const [name, bytes] of Object.entries(files)) {
    writeFileSync(path(name), bytes);
  }
  const disk = () => Object.fromEntries(Object.keys(files).map((name) => [name, readFileSync(path(name), "latin1")]));
  const one = (text) => text.replace("one", "ONE").replace("o\0n\0e\0", "O\0N\0E\0");
  const change = (before, ...names) => ({ ...before, ...Object.fromEntries(names.map((name) => [name, one(before[name])])) });
  return { disk, change };
}

function isAtEnd(element) {
  return element.scrollHeight - element.scrollTop - element.clientHeight < 24;
}

/** Drop a file as the workbench does; runs in the page. */
function dropOn(element, uri) {
  const dataTransfer = new globalThis.DataTransfer();
  dataTransfer.setData("application/vnd.code.uri-list", uri);
  element.dispatchEvent(new globalThis.DragEvent("drop", { dataTransfer, bubbles: true, cancelable: true }));
}

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

/** The item that a reader sees first, and where: items may come before it that nobody sees. */
function topItem(element) {
  const isSeen = (item) => item.getBoundingClientRect().bottom > element.getBoundingClientRect().top;
  const item = [...element.querySelectorAll(".item")].find(isSeen);
  return { text: item.textContent, top: Math.round(item.getBoundingClientRect().top) };
}
