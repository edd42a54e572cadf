import { afterEach, expect, test, vi } from "vitest";

import { useCode } from "../../src/code";
import type { Forms } from "../../src/forms";
import { window } from "./vscode";

afterEach(() => {
  delete (window as { activeTextEditor?: unknown }).activeTextEditor;
});

/** An editor that is active, with something selected or nothing. */
function activate(name: string, text: string, selected: [number, number] = [0, 0]): void {
  const document = {
    uri: { scheme: "file", path: `/w/${name}`, fsPath: `/w/${name}` },
    version: text.length,
    getText: () => text,
    offsetAt: (offset: number) => offset,
  };
  const [start, end] = selected;
  Object.assign(window, { activeTextEditor: { document, selection: { start, end, isEmpty: start === end } } });
}

test("what is replaced is what is selected after the user was asked about an older form", async () => {
  activate("a.py", "one two", [0, 3]);
  const open = vi.fn<Forms["open"]>(() => Promise.resolve());
  const makeWay = () => {
    activate("a.py", "zero one two", [5, 8]);
    return Promise.resolve(true);
  };
  await useCode("apply", "ONE", { makeWay, open });
  expect(open.mock.calls.map(([name, { text }]) => [name, text])).toEqual([["a.py", "zero ONE two"]]);
});

test("it goes into no other file than the one that was asked about", async () => {
  activate("a.py", "one");
  const open = vi.fn(() => Promise.resolve());
  const makeWay = () => {
    activate("b.py", "one");
    return Promise.resolve(true);
  };
  await expect(useCode("apply", "ONE", { makeWay, open })).rejects.toThrow("a.py is not the active file any more");
  expect(open).not.toHaveBeenCalled();
});
