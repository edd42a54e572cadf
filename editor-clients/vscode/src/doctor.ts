/** The command that looks whether all is well, also where the server does not start. */

import { execFile } from "node:child_process";

import * as vscode from "vscode";

import type { Parts } from "./commands";
import { serverCommand, serverSettings } from "./config";
import { findServerCommand } from "./launch";

const TIMEOUT_MS = 120_000;

/** Show what `tiro doctor` finds, with the program, the settings and the keys that the server would have. */
export async function doctor({ documents, keys }: Parts): Promise<string> {
  const command = [...doctorCommand(await findServerCommand(serverCommand())), "--settings", JSON.stringify(serverSettings())];
  const env = { ...process.env, ...(await keys.environment()) };
  const options = { location: vscode.ProgressLocation.Notification, title: "Tiro: Looking at everything" };
  const text = await vscode.window.withProgress(options, () => outputOf(command, env));
  await documents.show("doctor.txt", text);
  return text;
}

/** `tiro serve …` as `tiro doctor`. */
export function doctorCommand(command: readonly string[]): string[] {
  const place = command.lastIndexOf("serve");
  if (place === -1) {
    throw new Error("tiro.server.command does not end with “serve”: run “tiro doctor” in a terminal");
  }
  return [...command.slice(0, place), "doctor"];
}

/** What it prints; its exit code says no more than that. */
function outputOf([program = "", ...args]: readonly string[], env: NodeJS.ProcessEnv): Promise<string> {
  const cwd = vscode.workspace.workspaceFolders?.[0]?.uri.fsPath;
  return new Promise((resolve, reject) => {
    execFile(program, args, { ...(cwd === undefined ? {} : { cwd }), env, timeout: TIMEOUT_MS }, (error, stdout, stderr) => {
      if (stdout !== "") {
        resolve(stdout);
      } else {
        reject(error ?? new Error(stderr));
      }
    });
  });
}
