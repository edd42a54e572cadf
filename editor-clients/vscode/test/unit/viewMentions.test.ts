// @vitest-environment happy-dom
import { afterEach, beforeEach, expect, test, vi } from "vitest";

import { droppedUris } from "../../media/drop";
import { Mentions } from "../../media/mentions";
import type { FromView } from "../../src/viewMessages";

const ROWS = [
  { name: "a.py", detail: "src", value: "/w/src/a.py" },
  { name: "ab.py", detail: "", value: "/w/ab.py" },
];

let input: HTMLTextAreaElement;
let list: HTMLElement;
let mentions: Mentions;
const posted: FromView[] = [];
const changed = vi.fn();

beforeEach(() => {
  vi.useFakeTimers();
  posted.length = 0;
  input = document.createElement("textarea");
  list = document.createElement("ul");
  list.hidden = true;
  document.body.replaceChildren(list, input);
  mentions = new Mentions(input, list, (message) => posted.push(message), changed);
});

afterEach(() => {
  vi.useRealTimers();
});

function type(text: string, caret = text.length): void {
  input.value = text;
  input.setSelectionRange(caret, caret);
  mentions.look();
  vi.runAllTimers();
}

test.each([
  ["@", ""],
  ["look at @src/a", "src/a"],
  ["one\n@b", "b"],
])("%j asks for what fits to %j", (text, query) => {
  type(text);
  expect(posted).toEqual([{ type: "findMentions", query }]);
});

test.each(["me@example.org", "@decorator()", "no", "@a done"])("%j asks for nothing", (text) => {
  type(text);
  expect(posted).toEqual([]);
});

test("only the last letters are searched, and a late answer is dropped", () => {
  mentions.look();
  input.value = "@a";
  mentions.look();
  type("@ab");
  expect(posted).toEqual([{ type: "findMentions", query: "ab" }]);
  mentions.show("a", ROWS);
  expect(list.hidden).toBe(true);
});

test("the keys choose, the name takes the place of the letters, and the file is attached", () => {
  type("see @a now", 6);
  mentions.show("a", ROWS);
  expect([...list.children].map((row) => row.getAttribute("aria-selected"))).toEqual(["true", "false"]);
  expect(mentions.press("ArrowDown")).toBe(true);
  expect(document.getElementById(input.getAttribute("aria-activedescendant") ?? "")?.textContent).toBe("ab.py ");
  expect(mentions.press("Enter")).toBe(true);
  expect([input.value, input.selectionStart, list.hidden]).toEqual(["see ab.py now", 10, true]);
  expect(posted.at(-1)).toEqual({ type: "mention", value: "/w/ab.py" });
  expect(changed).toHaveBeenCalled();
  expect(mentions.press("Enter")).toBe(false);
});

test("Escape and leaving the input close the list, and a click chooses", () => {
  type("@a");
  mentions.show("a", ROWS);
  expect([mentions.press("Escape"), list.hidden, mentions.press("Escape")]).toEqual([true, true, false]);
  type("@ab");
  mentions.show("ab", ROWS);
  list.children[0]?.dispatchEvent(new MouseEvent("mousedown", { cancelable: true }));
  expect(input.value).toBe("a.py ");
  type("@a");
  mentions.show("a", ROWS);
  input.dispatchEvent(new Event("blur"));
  expect(list.hidden).toBe(true);
});

test("what is dropped is the workbench's list of files, else the usual one", () => {
  const data = (lists: Record<string, string>) => ({ getData: (kind: string) => lists[kind] ?? "" });
  expect(droppedUris(data({ "application/vnd.code.uri-list": "file:///a\r\nfile:///b", "text/uri-list": "file:///c" }))).toEqual(["file:///a", "file:///b"]);
  expect(droppedUris(data({ "text/uri-list": "# these\nfile:///c\n" }))).toEqual(["file:///c"]);
  expect(droppedUris(data({ "text/plain": "words" }))).toEqual([]);
});
