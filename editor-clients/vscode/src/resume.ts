/** What a window does with a server that has just connected: it goes on where it was. */

import * as vscode from "vscode";

import type { Client } from "./client";
import { actionsForError, messageOf } from "./failure";
import type { LastSession } from "./lastSession";
import * as protocol from "./protocol";
import { PAGE_MESSAGES, type Session } from "./session";

/** Go on with the session of this window; else offer what the server offers. It never throws. */
export async function resume(
  client: Client,
  session: Session,
  last: LastSession,
  offered: protocol.Resume | undefined,
): Promise<void> {
  try {
    const current = await client.requestNow(protocol.sessionGet, { limit: PAGE_MESSAGES });
    session.show(current.total > 0 ? current : ((await load(client, last)) ?? current));
    if (offered?.setting === "ask" && offered.latest !== null && current.total === 0) {
      offer(session, offered.latest);
    }
    await session.readDefaults();
  } catch (error) {
    session.tell("error", messageOf(error), actionsForError(error));
  }
}

function offer(session: Session, { id, title }: protocol.LatestSession): void {
  if (session.conversation.items.length === 0) {
    session.tell("info", `The newest saved session is “${title ?? id}”.`, [
      { label: "Continue It", command: "tiro.continueSession" },
      { label: "Choose Another", command: "tiro.loadSession" },
    ]);
  }
}

async function load(client: Client, last: LastSession): Promise<protocol.SessionView | undefined> {
  try {
    return await last.load(client);
  } catch (error) {
    const text = `The last session could not be loaded: ${messageOf(error)}`;
    void vscode.window.showWarningMessage(`Tiro: ${text}`);
    return undefined;
  }
}
