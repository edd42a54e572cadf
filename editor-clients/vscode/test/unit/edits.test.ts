import { beforeEach, expect, test, vi } from "vitest";

import { applyEdit } from "../../src/applyEdit";
import { parseDiff, patched } from "../../src/diff";
import { textDocuments } from "./vscode";

const URI = "file:///w/a.txt";
const CHANGE = { textDocument: { uri: URI, version: 3 }, edits: [] };
const log = { warn: vi.fn() };

beforeEach(() => {
  log.warn.mockClear();
  textDocuments.length = 0;
});

/** A document that is open, and whether it was saved. */
function open(isDirty: boolean, text = "text", save = () => Promise.resolve(true)) {
  const document = { uri: new URL(URI), isDirty, getText: () => text, save: vi.fn(save) };
  textDocuments.push(document);
  return document;
}

function apply(applied = true, edit: object = { documentChanges: [CHANGE] }) {
  const make = vi.fn(() => ({ applied }));
  return { make, answer: applyEdit({ edit }, make, log) };
}

test("a document without unsaved text is saved after the change, one with some is not", async () => {
  const clean = open(false);
  expect(await apply().answer).toEqual({ applied: true });
  expect(clean.save).toHaveBeenCalledOnce();
  textDocuments.length = 0;
  const dirty = open(true);
  expect(await apply(true, { changes: { [URI]: [] } }).answer).toEqual({ applied: true });
  expect(dirty.save).not.toHaveBeenCalled();
});

test("a change that VS Code refuses is told with a reason, and saves nothing", async () => {
  const document = open(false);
  expect(await apply(false).answer).toEqual({ applied: false, failureReason: expect.stringMatching(/changed/) as string });
  expect(document.save).not.toHaveBeenCalled();
});

test("a document that was closed meanwhile is not opened again for the change", async () => {
  const { make, answer } = apply();
  expect(await answer).toMatchObject({ applied: false });
  expect(make).not.toHaveBeenCalled();
});

test.each([
  () => Promise.resolve(false),
  () => Promise.reject(new Error("disk full")),
])("a save that fails is logged, and the change stands", async (save) => {
  open(false, "text", save);
  expect(await apply().answer).toEqual({ applied: true });
  expect(log.warn).toHaveBeenCalledOnce();
});

test("what VS Code could not decode is never written over the file", async () => {
  const document = open(false, "caf\uFFFD");
  expect(await apply().answer).toEqual({ applied: true });
  expect(document.save).not.toHaveBeenCalled();
});

function patch(text: string, ...lines: string[]): string | undefined {
  const diff = parseDiff(["--- a/f", "+++ b/f", ...lines].join("\n"));
  return diff === undefined ? undefined : patched(text, diff);
}

test("a diff is applied to the text it was made of, with its line ends", () => {
  expect(patch("one\r\ntwo\r\n", "@@ -1,2 +1,3 @@", "-one", "+ONE", "+new", " two")).toBe("ONE\r\nnew\r\ntwo\r\n");
  expect(patch("a\nb", "@@ -2,1 +2,2 @@", "-b", "\\ No newline at end of file", "+b", "+c")).toBe("a\nb\nc\n");
  expect(patch("a\n", "@@ -1,1 +1,1 @@", "-a", "+b", "\\ No newline at end of file")).toBe("b");
  expect(patch("a\n", "@@ -1,1 +0,0 @@", "-a")).toBe("");
  expect(patch("", "@@ -0,0 +1,1 @@", "+a")).toBe("a\n");
  const [many, hunks] = ["1\n2\n3\n4\n5\n6\n7\n8\n9\n", ["@@ -1,1 +1,1 @@", "-1", "+I", "@@ -9,1 +9,1 @@", "-9", "+IX"]];
  expect(patch(many, ...hunks)).toBe("I\n2\n3\n4\n5\n6\n7\n8\nIX\n");
});

test("a diff that was cut, or of another text, is not applied", () => {
  expect(patch("one\n", "@@ -1,1 +1,1 @@", "-two", "+2")).toBeUndefined();
  expect(patch("one\n", "@@ -1,1 +1,1 @@", "-one", "[The diff is cut here: it has 9 lines]")).toBeUndefined();
  expect(parseDiff("rm -- a\n--- x")).toBeUndefined();
});
