/** What a tool would do, for reading in an editor: VS Code's own diff, or the text as it stands. */

import { readFile } from "node:fs/promises";
import { basename, isAbsolute } from "node:path";

import * as vscode from "vscode";

import { type Diff, parseDiff, patched } from "./diff";
import type { PermissionParams } from "./protocol";
import type { SessionDocuments } from "./sessionDocument";
import { visibleLines } from "./visible";

/** Shows a preview; what it opened is closed again with `close`. */
export class Preview {
  #shown: vscode.Uri | undefined;

  constructor(private readonly documents: SessionDocuments) {}

  /** Open the diff, else the whole text of the preview. */
  async show({ toolUse, preview = "" }: PermissionParams): Promise<void> {
    const diff = parseDiff(preview);
    const texts = diff === undefined ? undefined : await bothTexts(diff, pathOf(toolUse.input));
    const name = `${toolUse.id}/${basename(diff?.name ?? toolUse.name)}`;
    if (texts === undefined) {
      const ending = diff === undefined ? "txt" : "diff";
      this.#shown = await this.documents.show(`${name}.${ending}`, visibleLines(preview));
      return;
    }
    this.#shown = await showDiff(this.documents, { name, title: `${diff?.name ?? ""} (Tiro's change)`, texts });
  }

  async close(): Promise<void> {
    const shown = this.#shown?.toString();
    const tabs = vscode.window.tabGroups.all.flatMap((group) => group.tabs);
    await vscode.window.tabGroups.close(tabs.filter((tab) => shown !== undefined && uriOf(tab) === shown));
  }
}

/** Open two texts side by side, under a name; what is hidden in them can be seen. */
export async function showDiff(
  documents: SessionDocuments,
  { name, title, texts: [before, after] }: { name: string; title: string; texts: readonly [string, string] },
): Promise<vscode.Uri> {
  const uri = documents.put(`after/${name}`, visibleLines(after));
  const beforeUri = documents.put(`before/${name}`, visibleLines(before));
  await vscode.commands.executeCommand("vscode.diff", beforeUri, uri, title, { preview: false });
  return uri;
}

/** The text of now and the one after the change; undefined when the diff does not fit it. */
async function bothTexts(diff: Diff, path: string | undefined): Promise<[string, string] | undefined> {
  const before = diff.isNew ? "" : await currentText(fileOf(path ?? diff.name));
  const after = before === undefined ? undefined : patched(before, diff);
  return before === undefined || after === undefined ? undefined : [before, after];
}

export function pathOf(input: unknown): string | undefined {
  const path = (input as { path?: unknown } | null)?.path;
  return typeof path === "string" ? path : undefined;
}

export function fileOf(path: string): vscode.Uri {
  const folder = vscode.workspace.workspaceFolders?.[0]?.uri;
  return isAbsolute(path) || folder === undefined
    ? vscode.Uri.file(path)
    : vscode.Uri.joinPath(folder, path);
}

/** What the editor holds, else the disk; to open it here would make it an open document. */
export async function currentText(file: vscode.Uri): Promise<string | undefined> {
  const open = vscode.workspace.textDocuments.find(({ uri }) => uri.toString() === file.toString());
  if (open !== undefined) {
    return open.getText();
  }
  try {
    const bytes = await readFile(file.fsPath);
    return decoded(bytes);
  } catch {
    return undefined;
  }
}

function decoded(bytes: Uint8Array): string {
  try {
    return new TextDecoder("utf-8", { fatal: true }).decode(bytes);
  } catch {
    return new TextDecoder("latin1").decode(bytes);
  }
}

function uriOf({ input }: vscode.Tab): string | undefined {
  if (input instanceof vscode.TabInputTextDiff) {
    return input.modified.toString();
  }
  return input instanceof vscode.TabInputText ? input.uri.toString() : undefined;
}
