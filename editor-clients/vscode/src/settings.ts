/** Keeping the server's settings those of VS Code, and its trust that of the workspace. */

import * as vscode from "vscode";

import type { Client } from "./client";
import { whenIdle } from "./idle";
import type { Session } from "./session";

/** Send what changes; trust is told at the start only, so granting it takes another server. */
export function followSettings(client: Client, session: Session): vscode.Disposable {
  return vscode.Disposable.from(
    vscode.workspace.onDidChangeConfiguration((change) => {
      if (change.affectsConfiguration("tiro")) {
        void client.sendSettings();
      }
    }),
    vscode.workspace.onDidGrantWorkspaceTrust(() => {
      void whenIdle(session, () => client.restart());
    }),
  );
}
