/** Keeping the server's settings those of VS Code, and its trust that of the workspace. */

import * as vscode from "vscode";

import type { Client } from "./client";
import { whenIdle } from "./idle";
import type { Session } from "./session";

/** Send what changes, and start a server that now has a command; trust is told at the start only, so granting it takes another server. */
export function followSettings(client: Client, session: Session): vscode.Disposable {
  return vscode.Disposable.from(
    vscode.workspace.onDidChangeConfiguration((change) => {
      if (change.affectsConfiguration("tiro")) {
        void client.sendSettings();
      }
      if (change.affectsConfiguration("tiro.server.command") && client.state === "stopped") {
        void client.start();
      }
    }),
    vscode.workspace.onDidGrantWorkspaceTrust(() => {
      void whenIdle(session, () => client.restart());
    }),
  );
}
