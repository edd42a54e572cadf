/** What menus, the palette and the walkthrough may ask: `tiro.ready`, `.answering`, `.asked`, `.allowed`. */

import * as vscode from "vscode";

import type { Client } from "./client";
import type { Session } from "./session";

/** Keep the context keys true. */
export function keepContexts(client: Client, session: Session): vscode.Disposable {
  const known = new Map<string, boolean>();
  const set = (name: string, value: boolean) => {
    if (known.get(name) !== value) {
      known.set(name, value);
      void vscode.commands.executeCommand("setContext", `tiro.${name}`, value);
    }
  };
  return vscode.Disposable.from(
    session.onStatus(({ state }) => {
      set("ready", state === "ready" || state === "answering");
      set("answering", state === "answering");
    }),
    client.onTurnEvent((event) => {
      if (event.type === "finished" && event.stopReason === "end_turn") {
        set("asked", true);
      } else if (event.type === "toolUse" && event.status === "done") {
        set("allowed", true);
      }
    }),
  );
}
