import { expect, test } from "vitest";

import { attachmentLabel, itemsOf, summaryOf } from "../../src/items";
import type { Message } from "../../src/messages";

const USE = { type: "tool_use", id: "c1", name: "grep", input: { pattern: "def " } };

test("stored messages read as the turn did when it streamed", () => {
  const messages: Message[] = [
    {
      role: "user",
      seq: 1,
      content: [
        { type: "text", text: "what is this?" },
        { type: "attachment", kind: "selection", path: "/w/a.py", text: "x", range: lines(2, 6) },
      ],
    },
    {
      role: "assistant",
      seq: 2,
      content: [{ type: "thinking", thinking: "hm" }, { type: "text", text: "I search." }, USE],
    },
    {
      role: "tool",
      seq: 3,
      content: { type: "tool_result", tool_use_id: "c1", content: "a.py:1", is_error: false },
    },
    { role: "assistant", seq: 4, content: "Found.", metadata: { tiro: { interrupted: true } } },
  ];
  expect(itemsOf(messages)).toEqual([
    { kind: "user", id: "m1", seq: 1, text: "what is this?", attachments: ["a.py:3-7"] },
    { kind: "thinking", id: "m2.0", text: "hm", isStreaming: false },
    { kind: "text", id: "m2.1", seq: 2, text: "I search.", isStreaming: false, isInterrupted: false },
    { kind: "tool", id: "m2.2", name: "grep", summary: "def ".trim(), status: "done", diff: "", output: "a.py:1" },
    { kind: "text", id: "m4.0", seq: 4, text: "Found.", isStreaming: false, isInterrupted: true },
  ]);
});

test("a failed result marks its tool use, and one without a tool use is still shown", () => {
  const result = { type: "tool_result", tool_use_id: "c1", content: [{ type: "text", text: "no" }] };
  const failed = itemsOf([
    { role: "assistant", content: [USE] },
    { role: "tool", content: { ...result, is_error: true } },
  ]);
  expect(failed).toMatchObject([{ kind: "tool", status: "failed", output: "no" }]);
  expect(itemsOf([{ role: "tool", content: result }])).toMatchObject([{ kind: "tool", output: "no" }]);
});

test.each([
  ["The user said no; nothing was run or changed. They say: use tabs", "rejected"],
  ["Not allowed by the rule 'edit: deny' (agent plan); nothing was run or changed.", "rejected"],
  ["The file says: The user said no; nothing was run or changed.", "failed"],
])("a stored refusal reads as the live one did: %s", (content, status) => {
  const result = { type: "tool_result", tool_use_id: "c1", content, is_error: true };
  const items = itemsOf([{ role: "assistant", content: [USE] }, { role: "tool", content: result }]);
  expect(items).toMatchObject([{ kind: "tool", status }]);
});

test.each([
  [{ path: "a.py", old_text: "one\ntwo\n", new_text: "ONE\n" }, "@@\n-one\n-two\n+ONE"],
  [{ path: "a.py", edits: [{ old_text: "a", new_text: "" }, { old_text: "b", new_text: "c\u202Ed" }] }, "@@\n-a\n@@\n-b\n+c⟨U+202E⟩d"],
  [{ path: "a.py", content: "all\nof it" }, "@@\n+all\n+of it"],
  [{ path: "a.py" }, ""],
])("a stored edit still shows what it replaced: %j", (input, diff) => {
  const items = itemsOf([{ role: "assistant", seq: 2, content: [{ type: "tool_use", id: "c1", name: "edit_file", input }] }]);
  expect(items).toMatchObject([{ kind: "tool", diff, output: "" }]);
});

test("nothing hides in the line of a tool use", () => {
  expect(summaryOf({ command: "rm a\u202Eb\u200B" })).toBe("rm a⟨U+202E⟩b⟨U+200B⟩");
});

test("what we do not know is named, not lost, and does not break the view", () => {
  const items = itemsOf([
    { role: "assistant", content: [{ type: "hologram", data: 1 }] },
    { role: "system", content: "be brief" },
    { role: "user", content: [{ type: "image", source: {} }] },
    { role: "assistant", content: [{ type: "text", text: "  " }] },
  ]);
  expect(items.map((item) => ("text" in item ? item.text : ""))).toEqual([
    "[hologram]",
    "be brief",
    "[image]",
  ]);
});

test.each([
  [{ kind: "file", path: "/w/src/a.py" }, "a.py"],
  [{ kind: "file", path: "C:\\w\\a.py" }, "a.py"],
  [{ kind: "selection", path: "/w/a.py", range: lines(4, 4) }, "a.py:5"],
  [{ kind: "text" }, "text"],
  [{ kind: "file", path: "/w/a.py", range: null }, "a.py"],
  [{}, "attachment"],
])("an attachment %j is called %s", (attachment, label) => {
  expect(attachmentLabel(attachment)).toBe(label);
});

test.each([
  [{ path: "a.py", limit: 3 }, "a.py"],
  [{ pattern: "x\n  y" }, "x y"],
  [{ anything: 1 }, '{"anything":1}'],
  [null, "{}"],
  [{ path: "p".repeat(500) }, `${"p".repeat(119)}…`],
])("a tool's input is one short line", (input, line) => {
  expect(summaryOf(input)).toBe(line);
});

function lines(start: number, end: number) {
  return { start: { line: start, character: 0 }, end: { line: end, character: 1 } };
}
