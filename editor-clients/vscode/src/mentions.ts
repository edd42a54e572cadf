/** What the prompt can name with `@`: files of the workspace, open ones first, and the problems of the active file. */

import * as vscode from "vscode";

import { type Attachments, fileAt } from "./attachment";
import type { Mention } from "./viewMessages";

const MAX_FOUND = 200;
const MAX_SHOWN = 20;
const UNWANTED = "**/{.git,.hg,.svn,node_modules,.venv,__pycache__}/**";
const PROBLEMS: Mention = { name: "problems", detail: "of the active file", value: "problems:" };

/** What fits to the letters after the `@`, the best first. */
export async function findMentions(query: string): Promise<Mention[]> {
  const open = openFiles();
  const found = query === "" ? [] : await vscode.workspace.findFiles(globFor(query), UNWANTED, MAX_FOUND);
  const files = ranked([...open, ...found].map((uri) => uri.fsPath), query, vscode.workspace.asRelativePath);
  return ["problems".startsWith(query) ? [PROBLEMS] : [], files].flat().slice(0, MAX_SHOWN);
}

/** Attach what was named. */
export async function attachMention(value: string, attachments: Attachments): Promise<void> {
  if (value === PROBLEMS.value) {
    await vscode.commands.executeCommand("tiro.attachProblems");
  } else {
    attachments.add(fileAt(vscode.Uri.file(value)));
  }
}

/** Attach files that were dropped on the view; throws where one is none. */
export async function attachDropped(uris: readonly string[], attachments: Attachments): Promise<void> {
  for (const text of uris) {
    const { scheme, path } = vscode.Uri.parse(text);
    // In a remote window the workbench names files of the machine that we run on so.
    const uri = vscode.Uri.file(path);
    const isHere = scheme === "file" || scheme === "vscode-remote";
    if (!isHere || (await vscode.workspace.fs.stat(uri)).type !== vscode.FileType.File) {
      throw new Error(`${path} is not a file, so it is not attached`);
    }
    attachments.add(fileAt(uri));
  }
}

/** Those that fit, by how early in their name the letters stand; each once. */
export function ranked(paths: readonly string[], query: string, relative: (path: string) => string): Mention[] {
  const letters = query.toLowerCase();
  return [...new Set(paths)]
    .map((value) => {
      const path = relative(value).replaceAll("\\", "/");
      const name = path.split("/").at(-1) ?? path;
      const [inName, inPath] = [name, path].map((text) => text.toLowerCase().indexOf(letters));
      const rank = inName === 0 ? 0 : inName !== -1 ? 1 : 2;
      return { mention: { name, detail: path.slice(0, -name.length - 1), value }, rank, isFit: inPath !== -1 };
    })
    .filter(({ isFit }) => isFit)
    .sort((one, other) => one.rank - other.rank)
    .map(({ mention }) => mention);
}

/** Every path that contains the letters, in either case. */
export function globFor(query: string): string {
  const letters = query.replaceAll(/[^/]/gu, (one) => {
    const [lower, upper] = [one.toLowerCase(), one.toUpperCase()];
    return lower === upper ? `[${one}]` : `[${lower}${upper}]`;
  });
  return `**/*${letters}*`;
}

function openFiles(): vscode.Uri[] {
  const tabs = vscode.window.tabGroups.all.flatMap((group) => group.tabs);
  return tabs.flatMap(({ input }) =>
    input instanceof vscode.TabInputText && input.uri.scheme === "file" ? [input.uri] : [],
  );
}
