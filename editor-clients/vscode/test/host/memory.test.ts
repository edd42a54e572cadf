/** The memory and single messages in the real extension host: previewed, edited, applied, taken back. */

import assert from "node:assert/strict";
import { existsSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

import * as vscode from "vscode";

import type { ContextSize, EmptyTrashResult, ExplainResult, PinResult, PreviewResult, RestoreResult, SaveResult, SessionView, TurnResult } from "../../src/protocol";
import { activeText, answering, ask, askSlowly, edit, errorOf, run, shows, systemPrompt, toldBy, until } from "./tools";

suite("Memory", () => {
  setup(async () => {
    await run("workbench.action.closeAllEditors");
    await run("tiro.clearSession");
  });

  teardown(() => setLimit(undefined));

  test("a resize is shown before it happens, edited, applied and undone (P2)", async () => {
    await ask(`alpha ${"long ".repeat(40)}`);
    await ask("beta");
    const size = (await run<ContextSize>("tiro.contextSize")).tokens;
    const preview = await previewWithLimit(2);
    assert.deepEqual([preview.evict, preview.keep], [[1, 2], [3, 4]]);
    await shows(/^# 2 messages of 4 would leave the window/);
    await shows(/^- 1 user: alpha long/m);
    await shows(/## Memo \(JSON\)\n\n```json\n\{\n {2}"last_resize": [^]*\n```\n\n## Summary\n\n\n\n<!--/);
    assert.equal((await run<ContextSize>("tiro.contextSize")).tokens, size, "the preview changed something");

    await edit("```json\n{", "```json\n{broken");
    assert.match(await errorOf(() => run("tiro.applyResize")), /The memo is no JSON/);
    await edit("{broken", '{"word": "quokka",');
    await edit("## Summary\n\n", "## Summary\n\nAlpha was discussed.\n");
    await run("tiro.applyForm");
    await until(() => vscode.window.activeTextEditor === undefined, "the form is closed");
    const { system } = await run<ExplainResult>("tiro.explainRequest", "");
    assert.match(JSON.stringify(system), /quokka[^]*Alpha was discussed\./);
    assert.doesNotMatch(await run<string>("tiro.showSession"), /alpha/);

    const { messages, memo, summary } = await run<SessionView>("tiro.undoResize");
    assert.deepEqual([messages.length, memo, summary], [4, {}, ""]);
    assert.match(await errorOf(() => run("tiro.undoResize")), /undo/);
    assert.match(await errorOf(() => run("tiro.applyResize")), /preview a resize/);
  });

  test("where nothing would leave the window one sentence says so, and no form is opened (P2)", async () => {
    await ask("one");
    for (const force of [false, true]) {
      const told = await toldBy(() => run("tiro.previewResize", force));
      assert.deepEqual(told, ["Tiro: Nothing would leave the window: all 2 messages would stay"]);
      assert.equal(vscode.window.activeTextEditor, undefined);
    }
    assert.match(await errorOf(() => run("tiro.applyResize")), /preview a resize/);
  });

  test("a draft that the session has left behind is refused, and dropping one changes nothing", async () => {
    await ask("one");
    await ask("two");
    await previewWithLimit(2);
    await run("tiro.pinMessage", 1);
    assert.match(await errorOf(() => run("tiro.applyResize")), /preview/i);
    await shows(/would leave the window/);
    await run("tiro.dropForm");
    assert.match(await run<string>("tiro.showSession"), /\[USER\] one\n.*\n\[USER\] two/);
  });

  test("edits of a preview are not lost to the next one without a question", async () => {
    await ask("one");
    await ask("two");
    await previewWithLimit(2);
    await edit("## Summary\n\n", "## Summary\n\nmine\n");
    const kept = await answering(undefined, () => run("tiro.previewResize", true));
    assert.deepEqual(kept, { result: undefined, asked: ["What you edited in resize.md was not applied yet"] });
    await shows(/mine/);
    await answering("Drop It", () => run("tiro.previewResize", true));
    await until(() => activeText().startsWith("#") && !activeText().includes("mine"), "another form is shown");
  });

  test("memo and summary are edited, and what is not edited is not sent (U1.7, U5)", async () => {
    await ask("hello");
    await run("tiro.editMemory");
    await edit("{}", '{"name": "Ada"}');
    await run("tiro.applyForm");
    await run("tiro.editMemory");
    await shows(/"name": "Ada"/);
    await edit("## Summary\n\n", "## Summary\n\nThey met.\n");
    await run("tiro.applyForm");
    await ask("who am I?");
    const system = JSON.stringify(await systemPrompt());
    assert.match(system, /Ada/);
    assert.match(system, /They met\./);
  });

  test("a pinned message stays, whatever leaves (U2.8)", async () => {
    await ask("keep this");
    await ask("two");
    await ask("three");
    assert.deepEqual((await run<PinResult>("tiro.pinMessage", 1)).pins, [1]);
    const { evict } = await previewWithLimit(2);
    assert.ok(evict.length > 0 && !evict.includes(1), "what is pinned would go");
    await run("tiro.dropForm");
    assert.deepEqual((await run<PinResult>("tiro.unpinMessage", { seq: 1 })).pins, []);
  });

  test("Compact Session folds the window into a summary, and Undo Resize takes it back (M7.1)", async () => {
    await ask(`alpha ${"long ".repeat(300)}`);
    await ask("beta");
    await run("tiro.compactSession");
    const text = await run<string | null>("tiro.showSession");
    assert.doesNotMatch(text ?? "", /beta/);
    await run("tiro.undoResize");
    assert.match(await run<string>("tiro.showSession"), /beta/);
  });

  test("Rewind takes back what came after, once the user says so (U1.4)", async () => {
    await ask("one");
    await ask("two");
    const refused = await answering(undefined, () => run("tiro.rewind", 2));
    assert.match(refused.asked[0] ?? "", /^Take back 2 messages\?/);
    assert.match(await run<string>("tiro.showSession"), /two/);
    await answering("Take Back", () => run("tiro.rewind", { seq: 2 }));
    assert.doesNotMatch(await run<string>("tiro.showSession"), /two/);
    assert.match(await errorOf(() => run("tiro.rewind", 2)), /Nothing came after/);
  });

  test("a message is edited, and the model sees the new wording (U1.2)", async () => {
    await ask("color");
    await run("tiro.editMessage", 1);
    await shows(/^color$/);
    await edit("color", " ");
    assert.match(await errorOf(() => run("tiro.applyForm")), /needs a word/);
    await edit(" ", "colour");
    await run("tiro.applyForm");
    assert.match(await run<string>("tiro.showSession"), /\[USER\] colour/);
  });

  test("Retry asks the last question again, after a question where tools ran", async () => {
    await ask("hello");
    const again = await run<TurnResult>("tiro.retry");
    assert.equal(again.text, "You said: hello");
    assert.equal((await run<string>("tiro.showSession")).match(/hello/g)?.length, 2);
    await ask("tool please");
    const { result } = await answering(undefined, () => run("tiro.retry"));
    assert.equal(result, undefined);
  });

  test("Retry asks a question as it was edited, and loses none that is being edited", async () => {
    await ask("color");
    await run("tiro.editMessage", 1);
    await shows(/^color$/);
    await edit("color", "colour");
    const { result, asked } = await answering(undefined, () => run("tiro.retry"));
    assert.equal(result, undefined);
    assert.match(asked[0] ?? "", /edited .* not applied/);
    await run("tiro.applyForm");
    const again = await run<TurnResult>("tiro.retry");
    assert.equal(again.text, "You said: colour");
  });

  test("what a turn excludes is refused while one runs (M7.1)", async () => {
    const { running } = await askSlowly();
    for (const command of ["tiro.compactSession", "tiro.previewResize", "tiro.retry", "tiro.rewind", "tiro.editMessage"]) {
      assert.match(await errorOf(() => run(command)), /still answering/, command);
    }
    await run("tiro.cancel");
    await running;
  });

  test("a session is renamed, and saved as a copy", async () => {
    await ask("hello");
    assert.equal((await run<SessionView>("tiro.renameSession", " My talk ")).title, "My talk");
    const path = join(tmpdir(), `copy-${process.pid}.json`);
    await run<SaveResult>("tiro.saveSessionAs", path);
    assert.ok(existsSync(path));
  });

  test("a session is deleted, the current one too, and comes back until the trash is emptied", async () => {
    await ask("short-lived");
    const row = await run<SaveResult>("tiro.saveSession");
    await run("tiro.deleteSession", { ...row, title: null, messages: 2 });
    assert.ok(!existsSync(row.path));
    assert.equal(await run("tiro.showSession"), null);
    assert.equal((await run<RestoreResult>("tiro.showDeletedSessions", row.id)).path, row.path);
    assert.ok(existsSync(row.path));
    await run("tiro.deleteSession", { ...row, title: null, messages: 2 });
    await answering(undefined, () => run("tiro.emptyTrash"));
    const { asked, result } = await answering("Delete", () => run<EmptyTrashResult>("tiro.emptyTrash"));
    assert.match(asked[0] ?? "", /^Delete \d+ sessions? in the trash\? They are gone for good\.$/);
    assert.ok(result.removed >= 1);
    assert.match(await errorOf(() => run("tiro.showDeletedSessions", row.id)), /No session in the trash/);
  });

  test("Doctor shows what the command line's doctor says", async () => {
    const text = await run<string>("tiro.doctor");
    assert.match(text, /^Tiro {8}/);
    assert.match(text, /scripted/);
    await until(() => activeText() === text, "it is shown");
  });
});

/** What a resize would do where the window may hold so many messages. */
async function previewWithLimit(messages: number): Promise<PreviewResult> {
  await setLimit(messages);
  let preview: PreviewResult | undefined;
  await until(async () => {
    preview = await run<PreviewResult | undefined>("tiro.previewResize", false);
    return typeof preview?.draftId === "string";
  }, "the server has the limit");
  assert.ok(preview);
  return preview;
}

async function setLimit(messages: number | undefined): Promise<void> {
  const settings = messages && { session: { resize: { max_keep_messages_count: messages } } };
  const configuration = vscode.workspace.getConfiguration("tiro");
  await configuration.update("settings", settings, vscode.ConfigurationTarget.Global);
}
