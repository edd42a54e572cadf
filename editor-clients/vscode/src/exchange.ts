/** The commands that look into all sessions, and that take one out or in. */

import { homedir } from "node:os";

import * as vscode from "vscode";

import type { Client } from "./client";
import type { ChatView } from "./chatView";
import { EXPORTS, exportPicks, hitPicks } from "./pick";
import * as protocol from "./protocol";
import type { Session } from "./session";

interface Parts {
  client: Client;
  session: Session;
  view: ChatView;
}

/** With a query given it only answers; else the user asks, and chooses what to load. */
export async function searchSessions(parts: Parts, given?: unknown) {
  const query = typeof given === "string" ? given : await askForQuery();
  if (query === undefined || query.trim() === "") {
    return undefined;
  }
  const { hits } = await parts.client.request(protocol.sessionSearch, { query });
  if (typeof given !== "string") {
    await openHit(parts, query, hits);
  }
  return { hits };
}

function askForQuery(): Thenable<string | undefined> {
  return vscode.window.showInputBox({
    title: "Search Sessions",
    prompt: 'Every word has to be in a message; "a phrase" as it stands, word* with any ending',
  });
}

async function openHit(parts: Parts, query: string, hits: protocol.SearchHit[]): Promise<void> {
  if (hits.length === 0) {
    tell(`Nothing was found for ${query}`);
    return;
  }
  const pick = await vscode.window.showQuickPick(hitPicks(hits), {
    title: "Search Sessions",
    placeHolder: "The newest come first; choose one to go to it",
    matchOnDescription: true,
  });
  if (pick === undefined) {
    return;
  }
  const { id, path, seq } = pick.value;
  if (path !== null && id !== parts.session.id) {
    await vscode.commands.executeCommand("tiro.loadSession", path);
  }
  await parts.view.goTo(seq);
}

/** The current session, or a row of the tree; as a format and to a file that are given or chosen. */
export async function exportSession({ client, session }: Parts, given?: unknown, to?: unknown) {
  const format = typeof given === "string" ? given : await pickFormat();
  const id = idOf(given) ?? session.id;
  const path = typeof to === "string" ? to : await askForTarget(id, format);
  if (format === undefined || path === undefined) {
    return undefined;
  }
  const result = await client.request(protocol.sessionExport, { id, format, path });
  const left = result.redacted === true ? ["what looks like a key was left out"] : [];
  tell([`Exported to ${path}`, ...left, ...(result.notes ?? [])].join("; "));
  return result;
}

function idOf(given: unknown): string | undefined {
  const id = (given as { id?: unknown } | null | undefined)?.id;
  return typeof id === "string" ? id : undefined;
}

async function pickFormat(): Promise<string | undefined> {
  const pick = await vscode.window.showQuickPick(exportPicks(), { title: "Export Session" });
  return pick?.value;
}

async function askForTarget(
  id: string | null,
  format: string | undefined,
): Promise<string | undefined> {
  const ending = EXPORTS.find(({ name }) => name === format)?.ending;
  if (ending === undefined) {
    return undefined;
  }
  const folder = vscode.workspace.workspaceFolders?.[0]?.uri ?? vscode.Uri.file(homedir());
  const target = await vscode.window.showSaveDialog({
    title: "Export Session",
    defaultUri: vscode.Uri.joinPath(folder, `${id ?? "session"}.${ending}`),
  });
  return target?.fsPath;
}

/** From a file that is given, or that the user chooses. */
export async function importSession({ client, session, view }: Parts, given?: unknown) {
  const path = typeof given === "string" ? given : await askForSource();
  if (path === undefined) {
    return undefined;
  }
  const result = await client.request(protocol.sessionImport, { path });
  session.show(result);
  await session.readDefaults();
  await view.reveal();
  tell([`Imported as ${result.id ?? "a new session"}`, ...(result.notes ?? [])].join("; "));
  return result;
}

async function askForSource(): Promise<string | undefined> {
  const [source] = (await vscode.window.showOpenDialog({ title: "Import Session" })) ?? [];
  return source?.fsPath;
}

function tell(text: string): void {
  void vscode.window.showInformationMessage(`Tiro: ${text}`);
}
