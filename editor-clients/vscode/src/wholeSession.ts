/** The commands about the session as a whole: shown, cleared, saved, named, loaded, deleted. */

import { homedir } from "node:os";

import * as vscode from "vscode";

import type { Client } from "./client";
import type { Parts } from "./commands";
import { counted, sessionPicks } from "./pick";
import * as protocol from "./protocol";

export async function showSession({ client, session, documents }: Parts): Promise<string | null> {
  const { text } = await client.request(protocol.sessionShow, {});
  if (text === null) {
    tell("The session is empty");
  } else {
    await documents.show(`${session.id ?? "session"}.txt`, text);
  }
  return text;
}

export async function clearSession({ client, session }: Parts): Promise<protocol.ClearResult> {
  const result = await client.request(protocol.sessionClear, {});
  await session.refresh();
  await session.readDefaults();
  const saved = result.savedAs === null ? "" : `; saved as ${result.savedAs}`;
  tell(`The session is cleared: ${counted(result.cleared, "message")}${saved}`);
  return result;
}

export async function newSession({ client, session, view }: Parts): Promise<protocol.SessionView> {
  const result = await client.request(protocol.sessionNew, {});
  session.show(result);
  await session.readDefaults();
  await view.reveal();
  return result;
}

export async function saveSession({ client }: Parts): Promise<protocol.SaveResult> {
  const result = await client.request(protocol.sessionSave, {});
  void vscode.window
    .showInformationMessage(`Tiro: Saved as ${result.path}`, "Open File")
    .then((choice) =>
      choice === "Open File"
        ? vscode.window.showTextDocument(vscode.Uri.file(result.path))
        : undefined,
    );
  return result;
}

/** Write a copy somewhere else; the session goes on where it was. */
export async function saveSessionAs({ client, session }: Parts, given?: unknown) {
  const path = typeof given === "string" ? given : await askForCopy(session.id);
  if (path === undefined) {
    return undefined;
  }
  const result = await client.request(protocol.sessionSave, { path });
  tell(`A copy is saved as ${result.path}`);
  return result;
}

async function askForCopy(id: string | null): Promise<string | undefined> {
  const folder = vscode.workspace.workspaceFolders?.[0]?.uri ?? vscode.Uri.file(homedir());
  const target = await vscode.window.showSaveDialog({
    title: "Save Session As",
    defaultUri: vscode.Uri.joinPath(folder, `${id ?? "session"}.json`),
  });
  return target?.fsPath;
}

/** Give a session a title, by which lists name it: a row of the tree, or the current one. */
export async function renameSession({ client, session, tree }: Parts, given?: unknown) {
  const row = rowOf(given);
  if (row !== undefined && row.id !== session.id) {
    const title = await askForTitle(row.title);
    if (title === undefined || title.trim() === "") {
      return undefined;
    }
    const result = await client.request(protocol.sessionRename, { id: row.id, title: title.trim() });
    tree.refresh();
    return result;
  }
  const title = typeof given === "string" ? given : await askForTitle(session.title);
  if (title === undefined || title.trim() === "") {
    return undefined;
  }
  const result = await client.request(protocol.sessionConfigure, { title: title.trim() });
  await session.readFacts();
  return result;
}

/** To the trash, so nobody is asked; a row of the tree, or one that is chosen. */
export async function deleteSession(parts: Parts, given?: unknown) {
  const { client, session, tree } = parts;
  const row = rowOf(given) ?? (await pickRow(client, "Delete Session"));
  if (row === undefined) {
    return undefined;
  }
  const isCurrent = row.id === session.id;
  const result = await client.request(protocol.sessionDelete, { id: row.id });
  if (isCurrent) {
    await session.refresh();
    await session.readDefaults();
  }
  tree.refresh();
  void vscode.window
    .showInformationMessage(`Tiro: “${row.title ?? row.id}” is in the trash`, "Undo")
    .then((choice) => (choice === "Undo" ? bringBack(row.id, isCurrent) : undefined));
  return result;
}

/** Out of the trash again; what was the current session is that again, too. */
async function bringBack(id: string, wasCurrent: boolean): Promise<void> {
  const restored = await vscode.commands.executeCommand<protocol.RestoreResult | undefined>("tiro.showDeletedSessions", id);
  if (wasCurrent && restored !== undefined) {
    await vscode.commands.executeCommand("tiro.loadSession", restored.path);
  }
}

/** What is in the trash: one that is chosen, or named by its id, comes back. */
export async function showDeletedSessions({ client, tree }: Parts, given?: unknown) {
  const id = typeof given === "string" ? given : await pickDeleted(client);
  if (id === undefined) {
    return undefined;
  }
  const result = await client.request(protocol.trashRestore, { id });
  tree.refresh();
  tell(`The session is back as ${result.id}`);
  return result;
}

/** For good, so the user is asked. */
export async function emptyTrash({ client }: Parts): Promise<protocol.EmptyTrashResult | undefined> {
  const { total } = await client.request(protocol.trashList, { limit: 0 });
  const text = `Delete ${counted(total, "session")} in the trash? They are gone for good.`;
  if ((await vscode.window.showWarningMessage(text, { modal: true }, "Delete")) === undefined) {
    return undefined;
  }
  return client.request(protocol.trashEmpty, {});
}

async function pickDeleted(client: Client): Promise<string | undefined> {
  const { sessions } = await client.request(protocol.trashList, { limit: 1000 });
  const placeHolder = sessions.length > 0 ? "The one that is to come back" : "The trash is empty";
  const chosen = await vscode.window.showQuickPick(sessionPicks(sessions), {
    title: "Deleted Sessions",
    placeHolder,
    matchOnDescription: true,
  });
  return chosen?.value.id;
}

function rowOf(given: unknown): protocol.SessionRow | undefined {
  return typeof given === "object" && given !== null ? (given as protocol.SessionRow) : undefined;
}

function askForTitle(value: string | null): Thenable<string | undefined> {
  return vscode.window.showInputBox({
    title: "Rename Session",
    prompt: "The title by which lists name this session",
    value: value ?? "",
  });
}

export async function loadSession({ client, session, view }: Parts, given?: unknown) {
  const chosen = given ?? (await pickRow(client, "Load Session"))?.path;
  if (typeof chosen !== "string") {
    return undefined;
  }
  const params = idOrPath(chosen);
  const result = await client.request(protocol.sessionLoad, params);
  session.show(result);
  await session.readDefaults();
  await view.reveal();
  return result;
}

export async function continueSession({ client, session }: Parts): Promise<protocol.SessionView> {
  const result = await client.request(protocol.sessionLoad, { latest: true });
  session.show(result);
  await session.readDefaults();
  return result;
}

async function pickRow(client: Client, title: string): Promise<protocol.SessionRow | undefined> {
  const { sessions } = await client.request(protocol.sessionList, {});
  if (sessions.length === 0) {
    tell("There is no saved session yet");
    return undefined;
  }
  const pick = await vscode.window.showQuickPick(sessionPicks(sessions), {
    title,
    placeHolder: "Saved sessions, newest first",
    matchOnDescription: true,
  });
  return pick?.value;
}

function idOrPath(given: string): { id: string } | { path: string } {
  return /[\\/]/.test(given) ? { path: given } : { id: given };
}

function tell(text: string): void {
  void vscode.window.showInformationMessage(`Tiro: ${text}`);
}
