/** Asking about code where it stands: the selection, else what the cursor is in, else the file. */

import * as vscode from "vscode";

import { type Attachments, pathOf, selectionAttachment, sourceEditor } from "./attachment";
import { shownDiagnostics } from "./diagnostics";
import { attachmentLabel } from "./items";
import type { Attachment } from "./protocol";
import { rangeOf } from "./range";

const EXPLAIN = "Explain this.";
const FIX = "Fix these problems.";
const FIX_NOTHING_SHOWN = "Fix what is wrong here.";
const DEFINITIONS = new Set([
  vscode.SymbolKind.Class,
  vscode.SymbolKind.Constructor,
  vscode.SymbolKind.Enum,
  vscode.SymbolKind.Function,
  vscode.SymbolKind.Interface,
  vscode.SymbolKind.Method,
  vscode.SymbolKind.Struct,
]);

/** Ask a question that is typed now. */
export async function askAbout(): Promise<unknown> {
  const about = await codeHere();
  const prompt = await vscode.window.showInputBox({
    title: `Ask Tiro about ${attachmentLabel(about)}`,
    placeHolder: "What do you want to know?",
  });
  return prompt === undefined ? undefined : ask(prompt, [about]);
}

/** Ask about the whole file, with what is not saved yet. */
export async function askAboutFile(): Promise<unknown> {
  const about = wholeFile(activeEditor());
  const prompt = await vscode.window.showInputBox({ title: `Ask Tiro about ${attachmentLabel(about)}` });
  return prompt === undefined ? undefined : ask(prompt, [about]);
}

export async function explainCode(): Promise<unknown> {
  return ask(EXPLAIN, [await codeHere()]);
}

/** Have fixed what VS Code shows as wrong there, and what it does not show. */
export async function fixCode(): Promise<unknown> {
  const about = await codeHere();
  const problems = problemsOf(activeEditor().document, about.range);
  return problems === undefined ? ask(FIX_NOTHING_SHOWN, [about]) : ask(FIX, [about, problems]);
}

/** Let the problems of the active file go along with the next prompt. */
export function attachProblems({ attachments }: { attachments: Attachments }): void {
  const problems = problemsOf(activeEditor().document);
  if (problems === undefined) {
    void vscode.window.showInformationMessage("Tiro: VS Code shows no problem in this file");
  } else {
    attachments.add(problems);
  }
}

function ask(prompt: string, attachments: Attachment[]): Thenable<unknown> {
  return vscode.commands.executeCommand("tiro.ask", prompt, attachments);
}

function activeEditor(): vscode.TextEditor {
  const editor = sourceEditor();
  if (editor === undefined) {
    throw new Error("No file is open: open the one that you ask about");
  }
  return editor;
}

async function codeHere(): Promise<Attachment> {
  const editor = activeEditor();
  const selected = selectionAttachment();
  if (selected !== undefined) {
    return selected;
  }
  const range = await definitionAt(editor.document, editor.selection.active);
  return range === undefined ? wholeFile(editor) : partOf(editor.document, range);
}

/** The innermost function or class around a place, as the language's extension knows it. */
async function definitionAt(document: vscode.TextDocument, place: vscode.Position): Promise<vscode.Range | undefined> {
  const found = await vscode.commands.executeCommand<vscode.DocumentSymbol[] | undefined>(
    "vscode.executeDocumentSymbolProvider",
    document.uri,
  );
  let innermost: vscode.Range | undefined;
  let level = found ?? [];
  while (level.length > 0) {
    const around = level.filter((symbol) => "children" in symbol && symbol.range.contains(place));
    innermost = around.findLast(({ kind }) => DEFINITIONS.has(kind))?.range ?? innermost;
    level = around.flatMap(({ children }) => children);
  }
  return innermost;
}

function partOf(document: vscode.TextDocument, { start, end }: vscode.Range): Attachment {
  const range = new vscode.Range(start, end); // of a selection, its two ends
  return { kind: "selection", path: pathOf(document), range: rangeOf(range), text: document.getText(range) };
}

function wholeFile({ document }: vscode.TextEditor): Attachment {
  return { kind: "buffer", path: pathOf(document), text: document.getText() };
}

/** The problems that touch a range, as lines of text. */
function problemsOf(document: vscode.TextDocument, range?: Attachment["range"]): Attachment | undefined {
  const { diagnostics } = shownDiagnostics({ path: document.uri.fsPath });
  const lines = diagnostics
    .filter((one) => !range || (one.range.end.line >= range.start.line && one.range.start.line <= range.end.line))
    .map((one) => `${one.range.start.line + 1}:${one.range.start.character + 1}: ${one.severity}: ${one.message}`);
  return lines.length === 0
    ? undefined
    : { kind: "diagnostics", path: pathOf(document), text: lines.join("\n") };
}
