import { expect, test, vi } from "vitest";

import { askPermission } from "../../src/permission";
import { messageWords, questionItem } from "../../src/permissionText";
import type { PermissionParams, TurnEvent } from "../../src/protocol";
import { Questions } from "../../src/questions";
import { asked, EventEmitter, ran, windowState } from "./vscode";

const PARAMS: PermissionParams = {
  turnId: "t1",
  toolUse: { id: "c1", name: "run_command", input: { command: "make" } },
  agent: "build",
  rule: "bash: ask",
  effect: "execute",
  always: ["bash: make allow"],
  preview: "make",
};

const LASTING = " — “Allow for This Session”: from now on, until this session ends, Tiro may do this without asking: run exactly “make”";

const DIFF = "--- a/sub/f.py\n+++ b/sub/f.py\n@@ -1,1 +1,2 @@\n-one\n+ONE\n+two";

/** Ask, and get hold of everything that can end the question. */
function ask(params = PARAMS, questions = new Questions()) {
  const cancel = new EventEmitter<void>();
  const events = new EventEmitter<TurnEvent>();
  const token = { isCancellationRequested: false, onCancellationRequested: cancel.event };
  const preview = { show: vi.fn(() => Promise.resolve()), close: vi.fn(() => Promise.resolve()) };
  const result = askPermission(params, token, events.event as never, preview, questions);
  return { cancel, events, result, preview, questions, ...newest() };
}

function newest() {
  const shown = asked.at(-1);
  if (shown === undefined) {
    throw new Error("nothing was asked");
  }
  return shown;
}

test.each([
  ["Allow Once", "once"],
  ["Allow for This Session", "always"],
  ["Reject", "reject"],
  [undefined, "reject"],
])("the answer %s is sent as %s", async (label, decision) => {
  const { answer, result } = ask();
  answer(label);
  expect(await result).toEqual({ decision });
});

test("a question that is withdrawn, or whose turn is over, is answered with a rejection", async () => {
  const withdrawn = ask();
  withdrawn.cancel.fire();
  expect(await withdrawn.result).toEqual({ decision: "reject" });
  const over = ask();
  over.events.fire({ type: "finished", turnId: "another" } as TurnEvent);
  over.events.fire({ type: "finished", turnId: "t1" } as TurnEvent);
  expect(await over.result).toEqual({ decision: "reject" });
  expect([over.cancel.listeners, over.events.listeners]).toEqual([0, 0]);
});

test("the question names agent, tool, effect and what exactly would run", () => {
  expect(messageWords(PARAMS)).toEqual({ labels: ["Allow Once", "Allow for This Session", "Reject"], text: "Tiro (build) wants to run run_command [execute]: make" + LASTING });
});

test.each([
  ["make  all", "make\u00A0\u00A0all", undefined],
  ["cat <<E\nrm -rf x\nE", "cat <<E…", "Show All"],
  ["echo [ls](command:x)", "echo [ls…", "Show All"],
  ["echo a\u202Eb", "echo a⟨U+202E⟩b", undefined],
  ["x".repeat(5_000), `${"x".repeat(400)}…`, "Show All"],
])("of %j a message shows only what it shows exactly", (preview, shown, more) => {
  const asks = messageWords({ ...PARAMS, preview });
  expect([asks.text.slice(asks.text.indexOf("]: ") + 3), asks.more]).toEqual([shown + LASTING, more]);
});

test("the question says what the answer for the session allows, and does not offer it when that is nothing", () => {
  expect(messageWords({ ...PARAMS, always: ["read: /a allow", "bash: x\ny allow"] }).text).toMatch(
    /without asking: read \/a; run exactly “x␊y”$/,
  );
  expect(messageWords({ ...PARAMS, always: [] })).toEqual({
    labels: ["Allow Once", "Reject"],
    text: "Tiro (build) wants to run run_command [execute]: make",
  });
});

test("an edit is asked about with its size and its file, the real one where it lies outside", () => {
  const edit = { ...PARAMS, toolUse: { ...PARAMS.toolUse, name: "edit_file" }, effect: "write" as const };
  expect(messageWords({ ...edit, preview: DIFF })).toMatchObject({
    text: "Tiro (build) wants to run edit_file [write]: +2 −1 lines in sub/f.py" + LASTING,
    more: "Show Diff",
  });
  const { text } = messageWords({ ...edit, preview: `Outside: /etc/f.py\n${DIFF}` });
  expect(text).toMatch(/in sub\/f\.py Outside: \/etc\/f\.py — /);
});

test("what was shown is asked about again, and closed with the answer", async () => {
  const { labels, answer, preview, result } = ask({ ...PARAMS, preview: DIFF });
  expect(labels).toEqual(["Allow Once", "Allow for This Session", "Show Diff", "Reject"]);
  const count = asked.length;
  answer("Show Diff");
  await vi.waitUntil(() => asked.length > count);
  expect([preview.show.mock.calls.length, preview.close.mock.calls.length]).toEqual([1, 0]);
  newest().answer("Allow Once");
  expect(await result).toEqual({ decision: "once" });
  expect(preview.close).toHaveBeenCalledOnce();
});

test("a question whose message went away waits, is counted, and is shown again on demand", async () => {
  const { answer, questions, result } = ask();
  const counts: number[] = [];
  questions.onChanged(() => counts.push(questions.count));
  expect(questions.count).toBe(1);
  const count = asked.length;
  expect(questions.showOldest()).toBe(true);
  expect(asked.length).toBe(count + 1);
  answer(undefined); // VS Code closes the first message when the second one says the same
  newest().answer("Allow Once");
  expect(await result).toEqual({ decision: "once" });
  expect([counts, questions.count, questions.showOldest()]).toEqual([[0], 0, false]);
});

test("what is chosen in an older message counts too, and the newest dismissed is a rejection", async () => {
  const older = ask();
  older.questions.showOldest();
  older.answer("Allow for This Session");
  expect(await older.result).toEqual({ decision: "always" });
  const dismissed = ask();
  dismissed.questions.showOldest();
  newest().answer(undefined);
  expect(await dismissed.result).toEqual({ decision: "reject" });
});

test("a window that gets the focus back shows what still waits, a moment later", async () => {
  vi.useFakeTimers();
  try {
    const [gone, waits] = [ask(), ask()];
    gone.cancel.fire();
    await gone.result;
    const count = asked.length;
    windowState.fire({ focused: false });
    windowState.fire({ focused: true });
    expect(asked.length).toBe(count); // a click that brought the focus still finds its button
    vi.runAllTimers();
    expect(asked.length).toBe(count + 1);
    windowState.fire({ focused: true });
    waits.questions.dispose();
    vi.runAllTimers();
    expect(asked.length).toBe(count + 1); // nothing is shown after the end
  } finally {
    vi.useRealTimers();
  }
});

test("while the view can be seen a question is asked there alone, and answered with a reason", async () => {
  const questions = new Questions();
  questions.setInView(true);
  const before = asked.length;
  const { result } = ask(PARAMS, questions);
  expect([asked.length, questions.oldest?.item.title]).toEqual([before, "build wants to run run_command [execute]"]);
  let wanted = 0;
  questions.onWanted(() => (wanted += 1));
  expect([questions.showOldest(), wanted, asked.length]).toEqual([true, 1, before]);
  questions.find("t1/c1")?.answer({ decision: "reject", message: "too wide" });
  expect(await result).toEqual({ decision: "reject", message: "too wide" });
  expect([questions.oldest, questions.find("t1/c1")]).toEqual([undefined, undefined]);
});

test("a question moves with the view, and the first answer counts wherever it is given", async () => {
  const questions = new Questions();
  questions.setInView(true);
  const { result } = ask(PARAMS, questions);
  const before = asked.length;
  questions.setInView(false);
  expect(asked.length).toBe(before + 1);
  const toast = newest();
  ran.length = 0;
  questions.setInView(true);
  expect([asked.length, ran]).toEqual([before + 1, [["notifications.hideToasts"]]]);
  toast.answer(undefined); // put away, since it is in the view
  questions.oldest?.answer({ decision: "once" });
  expect(await result).toEqual({ decision: "once" });
});

test("a message whose question was answered elsewhere goes away, and answers nothing any more", async () => {
  const questions = new Questions();
  const [first, second] = [ask(PARAMS, questions), ask({ ...PARAMS, turnId: "t2" }, questions)];
  ran.length = 0;
  const before = asked.length;
  questions.oldest?.answer({ decision: "once" });
  expect(await first.result).toEqual({ decision: "once" });
  expect(ran).toContainEqual(["notifications.hideToasts"]);
  expect(asked.length).toBe(before + 1); // the other one is shown again
  first.answer("Reject");
  newest().answer("Allow Once");
  expect(await second.result).toEqual({ decision: "once" });
});

test("the view is told what exactly would run, and nothing hides in it", () => {
  const item = questionItem({ ...PARAMS, preview: "cat  <<E\nrm a\u202Eb\u0007\nE" });
  expect(item).toMatchObject({ id: "t1/c1", subject: "", lines: ["cat  <<E", "rm a⟨U+202E⟩b␇", "E"], more: "", always: ["run exactly “make”"] });
  const long = questionItem({ ...PARAMS, preview: "x\n".repeat(100) });
  expect([long.lines.length, long.isWhole, long.more]).toEqual([12, false, "Show All"]);
  const diff = questionItem({ ...PARAMS, preview: `Outside: /etc/f.py\n${DIFF}` });
  expect(diff).toMatchObject({ subject: "+2 −1 lines in sub/f.py Outside: /etc/f.py", isDiff: true, more: "Show Diff" });
  expect([diff.lines, diff.isWhole]).toEqual([["@@ -1,1 +1,2 @@", "-one", "+ONE", "+two"], true]);
  for (const more of ["\n+x".repeat(12), `\n+${"x".repeat(2_000)}`]) {
    expect(questionItem({ ...PARAMS, preview: DIFF + more })).toMatchObject({ isWhole: false, more: "Show Diff" });
  }
});
