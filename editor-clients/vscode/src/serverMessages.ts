/** What the server says to the user: a message, with the way to the setting that it is about. */

import * as vscode from "vscode";
import type { ShowMessageParams } from "vscode-languageserver-protocol";

import { MIRRORED } from "./config";

/** How the server names the source of a wrong setting: the editor's, or a file and its line. */
const OURS = /^The editor's settings: ([\w.]+)/;
const FILE = /^(.+\.ya?ml)(?:, line (\d+))?: /;
/** LSP's numbers for kinds of messages. */
const [ERROR, WARNING] = [1, 2];

/** A button, and what it does. */
interface Way {
  label: string;
  open: () => Thenable<unknown>;
}

/** Show it; it is answered by nobody else. */
export async function showMessage({ type, message }: ShowMessageParams): Promise<void> {
  const way = wayTo(message);
  const show =
    type === ERROR ? vscode.window.showErrorMessage : type === WARNING ? vscode.window.showWarningMessage : vscode.window.showInformationMessage;
  const choice = await show(message, ...(way === undefined ? [] : [way.label]));
  if (choice !== undefined) {
    await way?.open();
  }
}

/** The VS Code setting in which a key of the configuration stands, if it has one of its own and that is set. */
export function settingOf(key: string, isSet: (name: string) => boolean): string {
  const own = MIRRORED.find(([name, path]) => path.join(".") === key && isSet(name));
  return `tiro.${own?.[0] ?? "settings"}`;
}

function wayTo(message: string): Way | undefined {
  const [, key] = OURS.exec(message) ?? [];
  if (key !== undefined) {
    const configuration = vscode.workspace.getConfiguration("tiro");
    const setting = settingOf(key, (name) => configuration.get<unknown>(name) !== configuration.inspect(name)?.defaultValue);
    return { label: "Open Setting", open: () => vscode.commands.executeCommand("workbench.action.openSettings", setting) };
  }
  const [, path, line] = FILE.exec(message) ?? [];
  return path === undefined ? undefined : { label: "Open File", open: () => openFile(path, Number(line ?? 1) - 1) };
}

function openFile(path: string, line: number): Thenable<unknown> {
  return vscode.window.showTextDocument(vscode.Uri.file(path), { selection: new vscode.Range(line, 0, line, 0) });
}
