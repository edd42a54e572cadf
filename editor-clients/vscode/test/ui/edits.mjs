// Edits of files (P5, P6, B54, B55): asked about with their diff, made, undone, redone.
import assert from "node:assert/strict";
import { readFileSync, writeFileSync } from "node:fs";
import { isDeepStrictEqual } from "node:util";

import { until } from "../workbench.mjs";

export const EDITS = {
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
      await ui.save();
    }
    const saved = { ...after, "a.txt": before["a.txt"], "c.txt": before["c.txt"], "b.txt": "one b\ntyped" };
    await until(() => isDeepStrictEqual(disk(), saved), "one step a file was undone");
    await ui.closeEditors();
  },
};

/** Five files of several encodings; what the disk holds, and what it holds after edits, as latin-1. */
function editedFiles(out) {
  const files = {
    "a.txt": Buffer.from("one a\n"),
    "b.txt": Buffer.from("one b\n"),
    "c.txt": Buffer.from("c one c\r\nzwei é\r\n"),
    "d.txt": Buffer.from("one é d\r\nlast", "latin1"),
    "e.txt": Buffer.from("\uFEFFe\none 😀 e\n", "utf16le"),
  };
  const path = (name) => `${out}/workspace/${name}`;
  for (const [name, bytes] of Object.entries(files)) {
    writeFileSync(path(name), bytes);
  }
  const disk = () => Object.fromEntries(Object.keys(files).map((name) => [name, readFileSync(path(name), "latin1")]));
  const one = (text) => text.replace("one", "ONE").replace("o\0n\0e\0", "O\0N\0E\0");
  const change = (before, ...names) => ({ ...before, ...Object.fromEntries(names.map((name) => [name, one(before[name])])) });
  return { disk, change };
}
