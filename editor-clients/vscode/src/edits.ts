/** The commands that take back what Tiro changed in files, and make it again. */

import * as vscode from "vscode";
import { RequestType } from "vscode-languageserver-protocol";

import type { Client } from "./client";
import * as protocol from "./protocol";
import type { Session } from "./session";

interface Parts {
  client: Client;
  session: Session;
}

/** The server finds the newest turn by itself, and tells in one sentence why it cannot. */
const undoNewest = new RequestType<{ command: "tiro.undoEdits" }, protocol.EditResult, void>(
  "workspace/executeCommand",
);

/** Take back what the newest turn changed in files. */
export async function undoEdits({ client }: Parts): Promise<protocol.EditResult> {
  const result = await client.request(undoNewest, { command: "tiro.undoEdits" });
  tell("Took back", result);
  return result;
}

/** Make the changes again that were taken back last. */
export async function redoEdits({ client, session }: Parts) {
  const { edits } = await client.request(protocol.editsList, {});
  const turnId = turnToRedo(edits.filter((edit) => isHere(edit, session.id)));
  if (turnId === undefined) {
    void vscode.window.showInformationMessage("Tiro: Nothing was taken back");
    return undefined;
  }
  const result = await client.request(protocol.editsRedo, { turnId });
  tell("Made again", result);
  return result;
}

/**
 * The turn whose changes were taken back last, of edits that come newest first.
 *
 * Undo goes from the newest turn to older ones, so it is the oldest above all that still stands.
 */
export function turnToRedo(edits: readonly protocol.Edit[]): string | undefined {
  const standing = edits.findIndex(({ undone }) => !undone);
  const above = standing === -1 ? edits : edits.slice(0, standing);
  return (above.at(-1) ?? edits.find(({ undone }) => undone))?.turnId;
}

/** Of this session, or in an open folder, as the server chooses what it undoes. */
function isHere({ sessionId, path }: protocol.Edit, current: string | null): boolean {
  const isOpen = vscode.workspace.getWorkspaceFolder(vscode.Uri.file(path)) !== undefined;
  return isOpen || (sessionId !== null && sessionId === current);
}

function tell(deed: string, { paths }: protocol.EditResult): void {
  const names = paths.map((path) => vscode.workspace.asRelativePath(path));
  const what = names.length === 0 ? "nothing" : `the changes of ${names.join(", ")}`;
  void vscode.window.showInformationMessage(`Tiro: ${deed} ${what}`);
}
