import { expect, test } from "vitest";

import { doctorCommand } from "../../src/doctor";
import { changedMemory, isSameMemory, memoryText } from "../../src/memoryText";
import { attachmentsOf, editableText, messageLine } from "../../src/messages";
import { messagePicks } from "../../src/pick";

const HEAD = ["# Two messages would go", "", "Edit, then apply."];
const LIST = ["- 1 user: hello", "- 2 user: ## Summary"];
const END = "<!-- The summary ends here";
const MEMO = { name: "Ada", count: 3 };

function changed(edit: (text: string) => string, memo: unknown = MEMO, summary = "Old.\n\n## Part\ntext") {
  const text = memoryText(HEAD, { memo, summary }, LIST);
  return changedMemory(text, edit(text));
}

test("what was not edited is not sent, whatever was done to the head or the ends of lines", () => {
  expect(changed((text) => text)).toEqual({});
  expect(changed((text) => text.replace("Edit, then apply.", "").replace("- 1 user: hello", "?"))).toEqual({});
  expect(changed((text) => text.replaceAll("\n", "\r\n"))).toEqual({});
});

test("memo and summary are read back as they were edited", () => {
  expect(changed((text) => text.replace("Ada", "Eve"))).toEqual({ memo: { name: "Eve", count: 3 } });
  expect(changed((text) => text.replace("Old.", "New."))).toEqual({ summary: "New.\n\n## Part\ntext" });
  expect(changed((text) => text.replace(/Old\.[^]*(?=<!--)/, ""))).toEqual({ summary: "" });
  expect(changed((text) => text.replace(JSON.stringify(MEMO, null, 2), ""))).toEqual({ memo: {} });
  expect(changed((text) => text.replace("null", "[1]"), "null")).toEqual({ memo: "[1]" });
});

test("when the memo was last written makes it no other memo, and what it or the summary says does", () => {
  const memory = { memo: { name: "Ada", last_resize: { turn: 1 } }, summary: "Old." };
  expect(isSameMemory(memory, { memo: { name: "Ada", last_resize: { turn: 2 } }, summary: "Old." })).toBe(true);
  expect(isSameMemory({ memo: { last_resize: {} }, summary: "" }, { memo: null, summary: "" })).toBe(true);
  expect(isSameMemory(memory, { ...memory, memo: { name: "Eve" } })).toBe(false);
  expect(isSameMemory(memory, { ...memory, memo: ["Ada"] })).toBe(false);
  expect(isSameMemory(memory, { ...memory, summary: "New." })).toBe(false);
});

test("a memo or a summary that holds the headings is still read whole", () => {
  const tricky = { text: `## Summary\n## Memo (JSON)\n\`\`\`\n${END}` };
  const summary = "## Summary\n## Memo (JSON)\n<!-- The summary ends here; what follows is not stored. -->\nmore";
  expect(changed((text) => text, tricky, summary)).toEqual({});
  expect(changed((text) => text.replace("more", "most"), tricky, summary)).toEqual({
    summary: summary.replace("more", "most"),
  });
});

test("a heading that is gone and a memo that is no JSON are refused", () => {
  expect(() => changed((text) => text.replace("## Summary\n", ""))).toThrow(/## Summary.*missing/);
  expect(() => changed((text) => text.slice(0, text.indexOf(END)))).toThrow(/ends here.*missing/);
  expect(() => changed((text) => text.replace("{", "{,"))).toThrow(/The memo is no JSON/);
});

test("a message is one line, and only words and attachments are edited", () => {
  const attachment = { type: "attachment", kind: "file", path: "/w/a.py", text: "x" };
  const message = { role: "user", seq: 3, content: [{ type: "text", text: "look\nhere" }, attachment] };
  expect(messageLine(message)).toBe("3 user: look here");
  expect(editableText(message)).toBe("look\nhere");
  expect(attachmentsOf(message)).toEqual([{ kind: "file", path: "/w/a.py", text: "x" }]);
  const use = { type: "tool_use", id: "1", name: "grep", input: {} };
  expect(messageLine({ role: "assistant", seq: 4, content: [use] })).toBe("4 assistant: grep");
  expect(() => editableText({ role: "assistant", content: [use] })).toThrow(/type tool_use/);
});

test("messages to choose from: newest first, pinned ones marked, unsaved ones left out", () => {
  const messages = [
    { role: "user", content: "one", seq: 1 },
    { role: "assistant", content: "", seq: 2 },
    { role: "user", content: "not stored" },
  ];
  expect(messagePicks(messages, [1]).map(({ label, value }) => [label, value])).toEqual([
    ["(no text)", 2],
    ["$(pinned) one", 1],
  ]);
});

test("the doctor is the same program as the server", () => {
  expect(doctorCommand(["/v/python", "-m", "tiro", "serve", "--log"])).toEqual(["/v/python", "-m", "tiro", "doctor"]);
  expect(() => doctorCommand(["/v/wrapper"])).toThrow(/tiro doctor/);
});
