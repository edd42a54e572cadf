/** What the view's blocks of code offer: copied, inserted at the cursor, or applied to a file after a look at it. */

import * as vscode from "vscode";

import { sourceEditor } from "./attachment";
import { withCode } from "./codePlace";
import type { Forms } from "./forms";
import type { CodeAction } from "./viewMessages";

/** Do what the button says; throws what stands in the way. */
export async function useCode(action: CodeAction, code: string, forms: Pick<Forms, "makeWay" | "open">): Promise<void> {
  switch (action) {
    case "copy":
      await vscode.env.clipboard.writeText(code);
      return;
    case "insert":
      await insert(code.replace(/\n$/, ""));
      return;
    case "apply":
      await apply(code, forms);
  }
}

/** At the cursor, or in place of what is selected; one step of undo. */
async function insert(code: string): Promise<void> {
  const editor = target();
  const isDone = await editor.edit((builder) => {
    for (const selection of editor.selections) {
      builder.replace(selection, code);
    }
  });
  if (!isDone) {
    throw new Error(`${nameOf(editor.document)} cannot be changed`);
  }
  await vscode.window.showTextDocument(editor.document, editor.viewColumn);
}

/** Show the change of the active file as a diff whose new side can still be edited. */
async function apply(code: string, forms: Pick<Forms, "makeWay" | "open">): Promise<void> {
  const name = nameOf(target().document);
  if (!(await forms.makeWay(name))) {
    return;
  }
  // Taken only now: the user may have been asked, and have gone on meanwhile.
  const { document, selection } = target();
  if (nameOf(document) !== name) {
    throw new Error(`${name} is not the active file any more: apply the code again`);
  }
  const { version } = document;
  const text = selection.isEmpty ? withCode(document.getText(), code) : replaced(document, selection, code);
  if (text === document.getText()) {
    void vscode.window.showInformationMessage(`Tiro: This is already there, in ${name}`);
    return;
  }
  await forms.open(name, {
    text,
    against: document.uri,
    apply: (edited) => replaceAll(document, version, edited),
  });
}

function replaced(document: vscode.TextDocument, selection: vscode.Selection, code: string): string {
  const text = document.getText();
  const [start, end] = [document.offsetAt(selection.start), document.offsetAt(selection.end)];
  return text.slice(0, start) + code.replace(/\n$/, "") + text.slice(end);
}

async function replaceAll(document: vscode.TextDocument, version: number, text: string): Promise<void> {
  if (document.isClosed || document.version !== version) {
    throw new Error(`${nameOf(document)} was changed or closed since: drop this, and apply the code again`);
  }
  const change = new vscode.WorkspaceEdit();
  change.replace(document.uri, new vscode.Range(0, 0, document.lineCount, 0), text);
  if (!(await vscode.workspace.applyEdit(change))) {
    throw new Error(`${nameOf(document)} cannot be changed`);
  }
  await vscode.window.showTextDocument(document);
}

function target(): vscode.TextEditor {
  const editor = sourceEditor();
  if (editor === undefined) {
    throw new Error("Open the file first in which the code is to go");
  }
  return editor;
}

function nameOf(document: vscode.TextDocument): string {
  return document.uri.path.split("/").at(-1) ?? "";
}
