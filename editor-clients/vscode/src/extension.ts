/** Tiro in VS Code: puts the parts together, and takes them apart again. */

import * as vscode from "vscode";

import { Attachments } from "./attachment";
import { ChatView } from "./chatView";
import { Client } from "./client";
import { registerCommands } from "./commands";
import { keepContexts } from "./contexts";
import { messageOf } from "./failure";
import { Forms } from "./forms";
import { offerInstall } from "./install";
import { Keys } from "./keys";
import { Session } from "./session";
import { registerNativeChat } from "./nativeChat";
import { SessionDocuments } from "./sessionDocument";
import { SessionsTree } from "./sessionsTree";
import { followSettings } from "./settings";
import { createStatusBarItem } from "./statusBar";

let running: Client | undefined;

/** Called by VS Code once; shows its own failure. */
export function activate(context: vscode.ExtensionContext): void {
  try {
    running = build(context);
    void running.start();
  } catch (error) {
    void vscode.window.showErrorMessage(`Tiro could not start: ${messageOf(error)}`);
    throw error;
  }
}

/** Called by VS Code at the end: the server is ended in order. */
export async function deactivate(): Promise<void> {
  await running?.stop();
}

function build(context: vscode.ExtensionContext): Client {
  const log = vscode.window.createOutputChannel("Tiro", { log: true });
  const documents = new SessionDocuments();
  const forms = new Forms();
  const keys = new Keys(context.secrets, context.globalState);
  const client = new Client(log, documents, keys);
  const session = new Session(client, context.workspaceState);
  const attachments = new Attachments();
  const tree = new SessionsTree(client, session, log);
  const view = new ChatView(context.extensionUri, session, attachments, client.questions, forms, log);
  context.subscriptions.push(
    ...[log, client, session, attachments, view, documents, forms, tree],
    createStatusBarItem(session, client.questions),
    registerCommands({ client, keys, session, view, attachments, documents, forms, tree, log }),
    followSettings(client, session),
    offerInstall(client, session),
    keepContexts(client, session),
    registerNativeChat(client, session, vscode.Uri.joinPath(context.extensionUri, "media", "tiro.svg")),
  );
  return client;
}
