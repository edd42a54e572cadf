/** Changes of files in the real extension host: asked about, made, cancelled, undone, redone. */

import assert from "node:assert/strict";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { basename, isAbsolute, join } from "node:path";

import * as vscode from "vscode";

import type { EditResult, TurnResult } from "../../src/protocol";
import { lastRequests, run, until } from "./tools";

const OPEN = ["a.txt", "b.txt", "c.txt"];
const CLOSED = ["d.txt", "e.txt"];
const DISK: Readonly<Record<string, Buffer>> = {
  "a.txt": Buffer.from("one a\n"),
  "b.txt": Buffer.from("one b\n"),
  "c.txt": Buffer.from("c one c\r\nzwei é\r\n"),
  "d.txt": Buffer.from("one é d\r\nlast", "latin1"),
  "e.txt": Buffer.from("\uFEFFe\none 😀 e\n", "utf16le"),
};
const ENCODINGS: Readonly<Record<string, BufferEncoding>> = { "d.txt": "latin1", "e.txt": "utf16le" };
const ALL = Object.keys(DISK);
const TYPED = "typed\n";

/** The number of the folder that the files of a test lie in. */
let folder = 0;

type Answer = (text: string, labels: string[]) => string | undefined | PromiseLike<string | undefined>;

suite("Edits", () => {
  const { showWarningMessage } = vscode.window;
  let questions: string[] = [];

  setup(async () => {
    await run("workbench.action.closeAllEditors");
    await run("tiro.clearSession");
    folder += 1; // what VS Code still knows of a file that was just closed is not in the way
    mkdirSync(pathOf(""));
    for (const [name, bytes] of Object.entries(DISK)) {
      writeFileSync(pathOf(name), bytes);
    }
    questions = [];
  });

  teardown(async () => {
    vscode.window.showWarningMessage = showWarningMessage;
    for (const name of OPEN.filter((one) => documentOf(one)?.isDirty)) {
      await show(name);
      await run("workbench.action.revertAndCloseActiveEditor");
    }
  });

  /** Have every question answered so. */
  function answerWith(answer: Answer): void {
    const ask = async (text: string, ...labels: string[]) => {
      questions.push(text);
      return answer(text, labels);
    };
    vscode.window.showWarningMessage = ask as unknown as typeof showWarningMessage;
  }

  test("a turn's edits are made, undone and redone, byte for byte (P6, B54)", async () => {
    await openAll();
    const before = state();
    answerWith(() => "Allow Once");
    assert.equal((await edit(ALL))?.stopReason, "end_turn");
    assert.equal(questions.length, 5);
    assert.deepEqual(state(), edited(ALL));
    assert.deepEqual(dirty(), ["b.txt"]);
    assert.deepEqual((await run<EditResult>("tiro.undoEdits")).paths.map((path) => basename(path)).sort(), ALL);
    assert.deepEqual(state(), before);
    assert.deepEqual(dirty(), ["b.txt"]);
    assert.equal((await run<EditResult>("tiro.redoEdits")).paths.length, 5);
    assert.deepEqual(state(), edited(ALL));
  });

  test("a turn that is cancelled in the middle is undone and redone as far as it came (P6, B03)", async () => {
    await openAll();
    const before = state();
    answerWith(() => (questions.length === 3 ? run("tiro.cancel").then(() => undefined) : "Allow Once"));
    assert.equal((await edit(ALL))?.stopReason, "cancelled");
    assert.deepEqual(state(), edited(["a.txt", "b.txt"]));
    assert.equal((await run<EditResult>("tiro.undoEdits")).paths.length, 2);
    assert.deepEqual(state(), before);
    await run("tiro.redoEdits");
    assert.deepEqual(state(), edited(["a.txt", "b.txt"]));
    await run("tiro.newSession"); // another session's changes are not taken back without a question
    questions = [];
    answerWith(() => (questions.length === 1 ? undefined : "Take back"));
    assert.equal(await run("tiro.undoEdits"), undefined);
    assert.deepEqual(state(), edited(["a.txt", "b.txt"]));
    await run("tiro.undoEdits");
    assert.deepEqual(state(), before);
    assert.match(questions[0] ?? "", /^Take back what another session did at .* to .*b\.txt, .*a\.txt\?$/);
  });

  test("the change of a finished edit can be looked at again, also when the session is read again", async () => {
    await openAll();
    answerWith(() => "Allow Once");
    await edit(["b.txt", "d.txt"]);
    const shown = () => {
      const input = vscode.window.tabGroups.activeTabGroup.activeTab?.input;
      const uris = input instanceof vscode.TabInputTextDiff ? [input.original, input.modified] : [];
      return Promise.all(uris.map(async (uri) => (await vscode.workspace.openTextDocument(uri)).getText()));
    };
    await run("tiro.showChange");
    assert.deepEqual((await shown()).map((text) => text.split(/\r?\n/)[0]), ["one é d", "ONE é d"]);
    await run("workbench.action.closeActiveEditor");
    await run("tiro.restartServer"); // only the stored tool use is left of it
    await run("tiro.showChange");
    assert.deepEqual(await shown(), ["one", "ONE"]);
  });

  test("VS Code's own undo takes back one step a file (P5, B55)", async () => {
    await openAll();
    const before = state();
    answerWith(() => "Allow Once");
    await edit(OPEN);
    for (const name of OPEN) {
      await show(name);
      await run("undo");
    }
    assert.deepEqual(texts(state()), texts(before));
    for (const name of OPEN) {
      await show(name);
      await run("redo");
    }
    assert.deepEqual(texts(state()), texts(edited(OPEN)));
  });

  test("what was typed while the question waited stays, and the change is not made (B55)", async () => {
    const document = await show("a.txt");
    answerWith(async () => {
      await type(document, "typed ", 0);
      return "Allow Once";
    });
    await edit(["a.txt"]);
    assert.equal(document.getText(), "typed one a\n");
    assert.deepEqual(readFileSync(pathOf("a.txt")), DISK["a.txt"]);
  });

  test("what was typed since is kept by an undo, or named where it cannot be (P6)", async () => {
    const document = await show("c.txt");
    answerWith(() => "Allow Once");
    await edit(["c.txt"]);
    await type(document, "mine\r\n", document.getText().length);
    await run("tiro.undoEdits");
    assert.equal(document.getText(), "c one c\r\nzwei é\r\nmine\r\n");
    await run("tiro.redoEdits");
    await type(document, "mine ", 0);
    const { showErrorMessage } = vscode.window;
    let told = "";
    vscode.window.showErrorMessage = ((text: string) => {
      told = text;
      return Promise.resolve(undefined);
    });
    try {
      assert.equal(await run("tiro.undoEdits"), undefined);
    } finally {
      vscode.window.showErrorMessage = showErrorMessage;
    }
    assert.match(told, /^Tiro: What was changed since then overlaps with it in line \d of .*c\.txt/);
    assert.equal(document.getText(), "mine c ONE c\r\nzwei é\r\nmine\r\n");
  });

  test("Show Diff shows the text of now and the one after, then asks again (P8, B55)", async () => {
    await openAll();
    const before = state();
    const shown: string[][] = [];
    answerWith(async (_, labels) => {
      if (questions.length % 2 === 1) {
        assert.ok(labels.includes("Show Diff"));
        return "Show Diff";
      }
      await until(() => diffTabs().length === 1, "the diff is open");
      for (const { original, modified } of diffTabs()) {
        assert.deepEqual([original.scheme, modified.scheme], ["tiro", "tiro"]);
        shown.push([await textOf(original), await textOf(modified)]);
      }
      return "Reject";
    });
    await edit(["b.txt", "d.txt"]);
    assert.deepEqual(shown, [
      ["one b\ntyped\n", "ONE b\ntyped\n"],
      ["one é d\r\nlast", "ONE é d\r\nlast"],
    ]);
    await until(() => diffTabs().length === 0, "the diff is closed");
    assert.deepEqual(state(), before);
  });

  test("every folder that is open is the workspace, also when one goes and comes (B48)", async () => {
    const second = vscode.workspace.workspaceFolders?.[1];
    assert.ok(second, "one folder is open");
    const path = join(second.uri.fsPath, "s.txt");
    writeFileSync(path, "one s\n");
    answerWith(() => "Allow Once");
    await edit([path]);
    assert.deepEqual([questions.length, readFileSync(path, "utf8")], [1, "ONE s\n"]);
    writeFileSync(path, "one s\n");
    answerWith(() => "Reject");
    await changeFolders(1, 1);
    await edit([path]);
    assert.match(questions[1] ?? "", /read_file/, "what is not open any more is read without a question");
    await changeFolders(1, 0, second);
    questions = [];
    answerWith(() => "Allow Once");
    await edit([path]);
    assert.deepEqual([questions.length, readFileSync(path, "utf8")], [1, "ONE s\n"]);
  });

  test("with tiro.saveEditedFiles off nothing is saved", async () => {
    const document = await show("a.txt");
    const settings = vscode.workspace.getConfiguration("tiro");
    await settings.update("saveEditedFiles", false, vscode.ConfigurationTarget.Global);
    answerWith(() => "Allow Once");
    await edit(["a.txt"]);
    await settings.update("saveEditedFiles", undefined, vscode.ConfigurationTarget.Global);
    assert.deepEqual([document.getText(), document.isDirty], ["ONE a\n", true]);
    assert.deepEqual(readFileSync(pathOf("a.txt")), DISK["a.txt"]);
  });
});

type State = Record<string, { text?: string; disk: Buffer }>;

/** Open three of the files, one of them with unsaved text. */
async function openAll(): Promise<void> {
  for (const name of OPEN) {
    const document = await show(name);
    if (name === "b.txt") {
      await type(document, TYPED, document.getText().length);
    }
  }
}

/** What documents and files hold. */
function state(): State {
  return Object.fromEntries(
    ALL.map((name) => {
      const document = documentOf(name);
      const disk = readFileSync(pathOf(name));
      return [name, document === undefined ? { disk } : { text: document.getText(), disk }];
    }),
  );
}

/** What they hold after a turn edited some of them. */
function edited(names: readonly string[]): State {
  const change = (name: string, text: string) => (names.includes(name) ? text.replace("one", "ONE") : text);
  return Object.fromEntries<State[string]>(
    ALL.map((name) => {
      const bytes = DISK[name] ?? Buffer.of();
      const encoding = ENCODINGS[name] ?? "utf8";
      const disk = Buffer.from(change(name, bytes.toString(encoding)), encoding);
      if (CLOSED.includes(name)) {
        return [name, { disk }];
      }
      const isTyped = name === "b.txt";
      const text = change(name, bytes.toString()) + (isTyped ? TYPED : "");
      return [name, { text, disk: isTyped ? bytes : disk }];
    }),
  );
}

function texts(found: State): (string | undefined)[] {
  return Object.values(found).map(({ text }) => text);
}

function dirty(): string[] {
  return OPEN.filter((name) => documentOf(name)?.isDirty);
}

function documentOf(name: string): vscode.TextDocument | undefined {
  return vscode.workspace.textDocuments.find(({ uri }) => uri.fsPath === pathOf(name));
}

async function show(name: string): Promise<vscode.TextDocument> {
  const editor = await vscode.window.showTextDocument(vscode.Uri.file(pathOf(name)), { preview: false });
  return editor.document;
}

async function type(document: vscode.TextDocument, text: string, offset: number): Promise<void> {
  const change = new vscode.WorkspaceEdit();
  change.insert(document.uri, document.positionAt(offset), text);
  assert.ok(await vscode.workspace.applyEdit(change));
}

/** Close and open folders, and wait until that is known. */
async function changeFolders(start: number, closed: number, ...opened: vscode.WorkspaceFolder[]): Promise<void> {
  const known = new Promise<void>((resolve) => {
    const listener = vscode.workspace.onDidChangeWorkspaceFolders(() => {
      listener.dispose();
      resolve();
    });
  });
  const folders = opened.map(({ uri, name }) => ({ uri, name }));
  assert.ok(vscode.workspace.updateWorkspaceFolders(start, closed, ...folders));
  await known;
}

function diffTabs(): vscode.TabInputTextDiff[] {
  const tabs = vscode.window.tabGroups.all.flatMap((group) => group.tabs);
  const inputs: unknown[] = tabs.map(({ input }) => input);
  return inputs.filter((input) => input instanceof vscode.TabInputTextDiff);
}

async function textOf(uri: vscode.Uri): Promise<string> {
  return (await vscode.workspace.openTextDocument(uri)).getText();
}

function pathOf(name: string): string {
  return join(vscode.workspace.workspaceFolders?.[0]?.uri.fsPath ?? "/nowhere", `edits-${folder}`, name);
}

/** Have the files edited while the view is hidden, so that its questions come as messages. */
async function edit(names: readonly string[]): Promise<TurnResult | undefined> {
  const prompt = ["edit", ...names.map((name) => (isAbsolute(name) ? name : `edits-${folder}/${name}`))].join(" ");
  const asked = (await lastRequests()).length;
  const result = run<TurnResult | undefined>("tiro.ask", prompt);
  await until(async () => (await lastRequests()).length > asked, "the provider was asked");
  await run("workbench.action.closeSidebar");
  return result;
}
