/** The commands that take back what Tiro changed in files, and make it again. */

import * as vscode from "vscode";

import type { Client } from "./client";
import * as protocol from "./protocol";
import type { Session } from "./session";

interface Parts {
  client: Client;
  session: Session;
}

/** Take back what the newest turn changed in files. */
export function undoEdits(parts: Parts): Promise<protocol.EditResult | undefined> {
  return move(parts, "undo", "Take back", "Took back");
}

/** Make the changes again that were taken back last. */
export function redoEdits(parts: Parts): Promise<protocol.EditResult | undefined> {
  return move(parts, "redo", "Make again", "Made again");
}

const METHODS = { undo: protocol.editsUndo, redo: protocol.editsRedo };

/** The server names the turn, and tells in one sentence why there is none. */
async function move({ client, session }: Parts, what: "undo" | "redo", question: string, deed: string) {
  const turn = (await client.request(protocol.editsNext, {}))[what];
  if (turn !== null && turn.sessionId !== session.id && !(await isWanted(question, turn))) {
    return undefined;
  }
  const result = await client.request(METHODS[what], { turnId: turn?.turnId ?? null });
  tell(deed, result);
  return result;
}

/** Ask first where a turn is of another session. */
async function isWanted(question: string, { at, paths }: protocol.EditsTurn): Promise<boolean> {
  const text = `${question} what another session did at ${new Date(at).toLocaleString()} to ${names(paths)}?`;
  return (await vscode.window.showWarningMessage(text, { modal: true }, question)) === question;
}

const MAX_COMMANDS = 5;

function tell(deed: string, { paths, commands }: protocol.EditResult): void {
  const what = paths.length === 0 ? "nothing: all of it was done already" : `the changes of ${names(paths)}`;
  const more = commands.length > MAX_COMMANDS ? `; and ${commands.length - MAX_COMMANDS} more` : "";
  const stays =
    commands.length === 0
      ? ""
      : `. What its commands did stays done: ${commands.slice(0, MAX_COMMANDS).join("; ")}${more}`;
  void vscode.window.showInformationMessage(`Tiro: ${deed} ${what}${stays}`);
}

function names(paths: readonly string[]): string {
  return paths.map((path) => vscode.workspace.asRelativePath(path)).join(", ");
}
