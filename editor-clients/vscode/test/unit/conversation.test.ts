import { expect, test } from "vitest";

import { Conversation } from "../../src/conversation";
import { placeOf } from "../../src/items";
import type { TurnEvent } from "../../src/protocol";
import type { Item } from "../../src/viewMessages";

type Loose = Record<string, unknown> & { type: TurnEvent["type"] };

/** Apply events, numbered as the server numbers them. */
function play(conversation: Conversation, ...events: Loose[]) {
  return events.flatMap((event, index) =>
    conversation.apply({
      sessionId: "s",
      turnId: "t",
      n: index + 1,
      ...event,
    } as unknown as TurnEvent),
  );
}

/** The items in short: kind and text. */
function shown(conversation: Conversation): string[] {
  return conversation.items.map((item: Item) => {
    switch (item.kind) {
      case "tool":
        return `tool ${item.name} ${item.summary} ${item.status}: ${item.output}`;
      default:
        return `${item.kind} ${item.text}`;
    }
  });
}

const STARTED: Loose = { type: "started", agent: "build", model: "m", seq: 1 };
const END: Loose = { type: "finished", stopReason: "end_turn" };
const READ = { id: "c1", name: "read_file", input: { path: "src/a.py" } };

test("a turn is shown in the order in which it happened", () => {
  const conversation = new Conversation();
  conversation.ask("hello", ["a.py:1-2"]);
  play(
    conversation,
    STARTED,
    { type: "thinking", delta: "hm" },
    { type: "text", delta: "I look. " },
    { type: "toolUse", toolUse: READ, status: "running" },
    { type: "toolUse", toolUse: READ, status: "done" },
    { type: "toolResult", toolUseId: "c1", isError: false, content: "print()", truncated: false, seq: 3 },
    { type: "text", delta: "It " },
    { type: "text", delta: "prints." },
    END,
  );
  expect(shown(conversation)).toEqual([
    "user hello",
    "thinking hm",
    "text I look. ",
    "tool read_file src/a.py done: print()",
    "text It prints.",
  ]);
});

test("a delta costs one change that holds the delta alone, however long the talk", () => {
  const conversation = new Conversation();
  conversation.reset(
    Array.from({ length: 10_000 }, (_, index) => ({
      role: index % 2 === 0 ? "user" : "assistant",
      content: "x".repeat(200),
      seq: index + 1,
    })),
  );
  play(conversation, STARTED, { type: "text", delta: "a".repeat(5_000) });
  const changes = play(conversation, { type: "text", delta: "b" });
  expect(changes).toEqual([{ type: "append", id: expect.any(String) as string, delta: "b" }]);
});

test.each([
  ["cancelled", "Cancelled. What had arrived is kept.", true],
  ["max_tokens", "The answer was cut at the model's output limit.", false],
  ["max_steps", "The turn reached its limit of steps. Say “continue” and it goes on where it stopped.", false],
  ["refusal", "The model refused to answer.", false],
])("a turn that ends with %s says so", (stopReason, text, isInterrupted) => {
  const conversation = new Conversation();
  play(conversation, STARTED, { type: "text", delta: "half" }, { type: "finished", stopReason });
  expect(conversation.items[0]).toMatchObject({ kind: "text", isStreaming: false, isInterrupted });
  expect(shown(conversation).at(-1)).toBe(`notice ${text}`);
});

test("an empty answer is told, and an answer by tools alone is none", () => {
  const empty = new Conversation();
  play(empty, STARTED, END);
  expect(shown(empty)).toEqual(["notice The model gave an empty answer."]);
  const tools = new Conversation();
  play(tools, STARTED, { type: "toolUse", toolUse: READ, status: "done" }, END);
  expect(shown(tools)).toEqual(["tool read_file src/a.py done: "]);
});

test("a prompt that was not taken leaves the transcript again, one that started stays", () => {
  const conversation = new Conversation();
  conversation.ask("first", []);
  expect(conversation.withdrawPrompt()).toHaveLength(1);
  expect(conversation.items).toEqual([]);
  conversation.ask("second", []);
  play(conversation, STARTED);
  expect(conversation.withdrawPrompt()).toEqual([]);
  expect(shown(conversation)).toEqual(["user second"]);
});

test("a notice that is told again while it is the last word takes its own place", () => {
  const conversation = new Conversation();
  conversation.notice("error", "no server");
  for (let enters = 0; enters < 5; enters += 1) {
    conversation.ask("hello", []);
    conversation.withdrawPrompt();
    expect(conversation.notice("error", "no server").map(({ type }) => type)).toEqual(["remove", "put"]);
  }
  expect(shown(conversation)).toEqual(["notice no server"]);
  conversation.notice("info", "no server");
  conversation.notice("error", "no server");
  expect(conversation.items).toHaveLength(3);
  conversation.ask("hello", []);
  conversation.notice("error", "no server");
  expect(conversation.items).toHaveLength(5);
});

test("a prompt sent while the session is being read stays below it", () => {
  const conversation = new Conversation();
  conversation.ask("hello", []);
  conversation.reset([{ role: "user", content: "stored", seq: 1 }]);
  expect(shown(conversation)).toEqual(["user stored", "user hello"]);
  play(conversation, STARTED);
  conversation.reset([]);
  expect(shown(conversation)).toEqual([]);
});

const DIED = "notice Interrupted: the server ended in the middle of this answer. What it had stored is kept; what it had not stored of this answer is gone.";

test("a server that dies leaves what had arrived, and the word that it was interrupted", () => {
  const conversation = new Conversation();
  conversation.ask("hello", []);
  play(conversation, STARTED, { type: "text", delta: "half" });
  conversation.breakOff();
  expect(conversation.items).toMatchObject([{ text: "hello" }, { text: "half", isInterrupted: true }, {}]);
  expect(shown(conversation).at(-1)).toBe(DIED);
  expect(conversation.breakOff()).toEqual([]);
  conversation.reset([{ role: "user", content: "hello", seq: 1 }], conversation.endings);
  expect(shown(conversation)).toEqual(["user hello", DIED]);
});

test("the end of a turn is told once, and of one that another session has taken the place of not at all", () => {
  const conversation = new Conversation();
  const cancelled: Loose = { type: "finished", stopReason: "cancelled" };
  play(conversation, STARTED);
  conversation.breakOff();
  play(conversation, cancelled);
  expect(shown(conversation)).toEqual([DIED]);
  play(conversation, { ...STARTED, seq: 3 });
  conversation.reset([]);
  play(conversation, cancelled);
  expect(shown(conversation)).toEqual([]);
});

test("how turns ended stands behind them when the session is read again, whatever page it comes with", () => {
  const first = new Conversation();
  const turn = (seq: number, end: Loose) => {
    play(first, { ...STARTED, seq }, { type: "text", delta: "half" }, { type: "stored", n: 3, seq: seq + 1, role: "assistant" }, end);
  };
  turn(1, { type: "finished", stopReason: "cancelled" });
  turn(3, { type: "finished", stopReason: "error", error: { message: "refused", data: { kind: "modelFailed" } } });
  turn(5, { ...END, error: null });
  play(first, { ...STARTED, seq: 7 }, { type: "finished", stopReason: "error", error: { message: "no network" } });
  const messages = [1, 2, 3, 4, 5, 6, 7].map((seq) => ({ role: seq % 2 ? "user" : "assistant", content: `${seq}`, seq }));
  const again = new Conversation();
  again.reset(messages.slice(2), first.endings);
  const end = ["user 3", "text 4", "notice refused", "user 5", "text 6", "user 7", "notice no network"];
  expect(shown(again)).toEqual(end);
  expect(again.items[2]).toMatchObject({ level: "error", actions: [{ label: "Select Model" }, { label: "Show Log" }] });
  again.prepend(messages.slice(0, 2));
  expect(shown(again)).toEqual(["user 1", "text 2", "notice Cancelled. What had arrived is kept.", ...end]);
});

test("the end of a turn that was taken back is forgotten when another begins in its place", () => {
  const conversation = new Conversation();
  play(conversation, STARTED, { type: "finished", stopReason: "refusal" });
  play(conversation, STARTED, END);
  expect(conversation.endings.map(({ text }) => text)).toEqual(["The model gave an empty answer."]);
});

test("a prompt that ends the session is marked as unanswered", () => {
  const conversation = new Conversation();
  const marks = () => conversation.items.map((item) => (item.kind === "user" ? item.mark : item.kind));
  conversation.reset([{ role: "user", content: "one", seq: 1 }]);
  expect(marks()).toEqual(["Unanswered"]);
  conversation.reset([{ role: "user", content: "one", seq: 1 }, { role: "assistant", content: "two", seq: 2 }]);
  expect(marks()).toEqual([undefined, "text"]);
});

test("the same tool use id in two turns is two tool uses", () => {
  const conversation = new Conversation();
  const use: Loose = { type: "toolUse", toolUse: READ, status: "done" };
  play(conversation, STARTED, use, END);
  play(conversation, STARTED, use, END);
  expect(conversation.items).toHaveLength(2);
});

test("output of a running tool is kept up to its limit", () => {
  const conversation = new Conversation();
  const output: Loose = { type: "toolOutput", toolUseId: "c1", delta: "o".repeat(3_000) };
  play(conversation, STARTED, { type: "toolUse", toolUse: READ, status: "running" });
  expect(play(conversation, output)).toHaveLength(1);
  play(conversation, output);
  expect(play(conversation, output)).toEqual([]);
  expect(conversation.items[0]).toMatchObject({ output: `${"o".repeat(4_096)}…` });
});

test("earlier messages go above, until the first is shown", () => {
  const conversation = new Conversation();
  conversation.reset([{ role: "user", content: "three", seq: 3 }]);
  expect(conversation.hasEarlier).toBe(true);
  const [change] = conversation.prepend([
    { role: "user", content: "one", seq: 1 },
    { role: "assistant", content: "two", seq: 2 },
  ]);
  expect(change).toMatchObject({ type: "prepend", hasEarlier: false });
  expect(shown(conversation)).toEqual(["user one", "text two", "user three"]);
});

test("what is said to a running turn waits in sight, and stands where the turn takes it", () => {
  const conversation = new Conversation();
  const marks = () => conversation.items.flatMap((item) => (item.kind === "user" && item.mark ? [item.mark] : []));
  conversation.ask("go", []);
  conversation.say("use tabs");
  conversation.say("refused");
  expect(conversation.unsay("refused")).toMatchObject([{ type: "remove" }]);
  play(
    conversation,
    STARTED,
    { type: "stored", n: 2, seq: 1, role: "user" },
    { type: "text", delta: "An answer" },
    { type: "stored", n: 4, seq: 2, role: "assistant" },
  );
  expect(shown(conversation)).toEqual(["user go", "user use tabs", "text An answer"]);
  expect(marks()).toEqual(["Waits for the next step"]);
  play(conversation, { type: "stored", n: 5, seq: 3, role: "user" }, { type: "text", delta: "with tabs" });
  expect(shown(conversation)).toEqual(["user go", "text An answer", "user use tabs", "text with tabs"]);
  expect(marks()).toEqual([]);
  conversation.say("too late");
  play(conversation, END);
  expect(marks()).toEqual(["The answer ended before it was taken"]);
});

test("what left the window by itself is told, the last time with the way back, and why the memo stayed", () => {
  const conversation = new Conversation();
  const resize = { type: "resize" as const, evicted: 3, tokensBefore: 9_000, tokensAfter: 400, memoRefused: null };
  const told = "3 messages left the window to make room: 9.0k → 400 tokens. The archive keeps them.";
  play(conversation, resize);
  expect(shown(conversation)).toEqual([`notice ${told}`]);
  expect(conversation.items[0]).toMatchObject({ level: "info", actions: [{ label: "Undo Resize", command: "tiro.undoResize" }] });
  play(conversation, { ...resize, tokensBefore: 8_000, memoRefused: "The memo cannot be used: it is empty" });
  expect(shown(conversation)).toEqual([`notice ${told.replace("9.0k", "8.0k")} The memo cannot be used: it is empty`]);
  play(conversation, { ...resize, evicted: 0 });
  expect(shown(conversation)).toHaveLength(1);
});

test("an event of a kind that is not known yet changes nothing", () => {
  const conversation = new Conversation();
  expect(play(conversation, { type: "steered" as TurnEvent["type"] })).toEqual([]);
});

test("a preview is shown from the event on that brings it, until the result is there", () => {
  const conversation = new Conversation();
  const run = { id: "c1", name: "run_command", input: { command: "make" } };
  play(conversation, STARTED, { type: "toolUse", toolUse: run, status: "proposed" });
  play(conversation, { type: "toolUse", toolUse: run, status: "running", preview: "make -C /w" });
  expect(shown(conversation)).toEqual(["tool run_command make running: make -C /w"]);
  play(
    conversation,
    { type: "toolUse", toolUse: run, status: "done" },
    { type: "toolResult", toolUseId: "c1", isError: false, content: "built", truncated: false, seq: 3 },
  );
  expect(shown(conversation)).toEqual(["tool run_command make done: built"]);
});

test("the diff of a change stays in its line when it is made, and can be looked at whole", () => {
  const conversation = new Conversation();
  const edit = { id: "c1", name: "edit_file", input: { path: "a.py", old_text: "a", new_text: "b" } };
  const preview = "--- a/a.py\n+++ b/a.py\n@@ -1,1 +1,1 @@\n-a\n+b";
  play(conversation, STARTED, { type: "toolUse", toolUse: edit, status: "proposed", preview });
  const [item] = conversation.items;
  expect(item).toMatchObject({ kind: "tool", diff: "@@ -1,1 +1,1 @@\n-a\n+b", output: "" });
  expect(conversation.changeOf(item?.id ?? "")).toEqual({ toolUse: edit, preview, isDone: false });
  play(
    conversation,
    { type: "toolUse", toolUse: edit, status: "done" },
    { type: "toolResult", toolUseId: "c1", isError: false, content: "Edited", truncated: false, seq: 3 },
    END,
  );
  expect(conversation.items[0]).toMatchObject({ status: "done", diff: "@@ -1,1 +1,1 @@\n-a\n+b", output: "Edited" });
  expect(conversation.changeOf(item?.id ?? "")?.isDone).toBe(true);
  conversation.reset([]);
  expect(conversation.changeOf(item?.id ?? "")).toBeUndefined();
});

test("what is stored gets its number, in the turn and when it is read again", () => {
  const conversation = new Conversation();
  conversation.ask("hello", []);
  const changes = play(
    conversation,
    STARTED,
    { type: "stored", seq: 1, role: "user" },
    { type: "text", delta: "I look. " },
    { type: "toolUse", toolUse: READ, status: "proposed" },
    { type: "stored", seq: 2, role: "assistant" },
    { type: "stored", seq: 3, role: "tool" },
    { type: "text", delta: "Done." },
    { type: "stored", seq: 4, role: "assistant" },
    END,
  );
  expect(changes.filter(({ type }) => type === "seq").map((change) => "seq" in change && change.seq)).toEqual([1, 2, 4]);
  const seqs = () => conversation.items.map((item) => ("seq" in item ? item.seq : undefined));
  expect(seqs()).toEqual([1, 2, undefined, 4]);
  conversation.reset([{ role: "user", content: "hello", seq: 1 }, { role: "assistant", content: "Done.", seq: 2 }]);
  expect(seqs()).toEqual([1, 2]);
});

test("a view gets the last items, and the others before those it has", () => {
  const conversation = new Conversation();
  conversation.reset(
    Array.from({ length: 250 }, (_, index) => ({ role: "user", content: `${index + 1}`, seq: index + 1 })),
  );
  const texts = (change: ReturnType<Conversation["before"]>) => {
    const items = change !== undefined && "items" in change ? change.items : [];
    return [items.length, items[0]?.id, change !== undefined && "hasEarlier" in change && change.hasEarlier];
  };
  expect(texts(conversation.snapshot())).toEqual([100, "m151", true]);
  expect(texts(conversation.before("m151"))).toEqual([100, "m51", true]);
  expect(texts(conversation.before("m51"))).toEqual([50, "m1", false]);
  expect([conversation.before("m1"), conversation.before("gone")]).toEqual([undefined, undefined]);
});

test("a message that was found is shown where it was said, a result in the answer that asked for it", () => {
  const conversation = new Conversation();
  conversation.reset([
    { seq: 3, role: "user", content: "look" },
    { seq: 4, role: "assistant", content: [{ type: "text", text: "ok" }, { type: "tool_use", ...READ }] },
    { seq: 5, role: "tool", content: [{ type: "tool_result", tool_use_id: "c1", content: "print()" }] },
    { seq: 6, role: "user", content: "thanks" },
  ]);
  play(conversation, { ...STARTED, seq: 7 }, { type: "text", delta: "it is being written" });
  expect([2, 3, 4, 5, 6, 99].map((seq) => placeOf(conversation.items, seq))).toEqual([
    undefined,
    "m3",
    "m4.1",
    "m4.1",
    "m6",
    "m6",
  ]);
});
