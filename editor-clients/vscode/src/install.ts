/**
 * Bringing the server where none is found: from a clone of Tiro, in a terminal that shows it.
 *
 * It goes where the README says, so that Emacs and the shell find the same one.
 */

import { access } from "node:fs/promises";
import { join } from "node:path";

import * as vscode from "vscode";

import type { Client } from "./client";
import { FIRST_STEPS } from "./failure";
import { findOnPath } from "./launch";
import type { Session } from "./session";

const TITLE = "Install Tiro's server";

/** Offer it in the view, too, where no server was found. */
export function offerInstall(client: Client, session: Session): vscode.Disposable {
  return client.onStateChanged(() => {
    if (client.missing !== undefined) {
      session.tell("error", client.missing.message, FIRST_STEPS);
    }
  });
}

/** Ask for the clone if it is not open, install from it, and start the server. */
export async function installServer(client: Client): Promise<void> {
  const clone = (await openClone()) ?? (await chooseClone());
  if (clone === undefined) {
    return;
  }
  const code = await runInTerminal(await installCommand(clone, process.env));
  if (code === 0) {
    await client.restart();
  } else {
    throw new Error("The server was not installed: the terminal says why; then try “Tiro: Install Server” again");
  }
}

/** The command line: pipx where it is there, else an environment of its own in `~/.venvs/tiro`. */
export async function installCommand(clone: string, env: NodeJS.ProcessEnv): Promise<string> {
  const source = quoted(`${clone}[local]`);
  if ((await findOnPath("pipx", env)) !== undefined) {
    return `pipx install --force ${source}`;
  }
  const python = ((await findOnPath("python3", env)) ?? "python").split(/[\\/]/).at(-1) ?? "python";
  return process.platform === "win32"
    ? `${python} -m venv "%USERPROFILE%\\.venvs\\tiro" && "%USERPROFILE%\\.venvs\\tiro\\Scripts\\pip" install ${source}`
    : `${python} -m venv ~/.venvs/tiro && ~/.venvs/tiro/bin/pip install ${source}`;
}

async function openClone(): Promise<string | undefined> {
  const folders = (vscode.workspace.workspaceFolders ?? []).map(({ uri }) => uri.fsPath);
  for (const folder of folders) {
    if (vscode.workspace.isTrusted && (await isClone(folder))) {
      return folder;
    }
  }
  return undefined;
}

async function chooseClone(): Promise<string | undefined> {
  const [chosen] =
    (await vscode.window.showOpenDialog({
      title: `${TITLE}: choose the folder of your clone of Tiro`,
      openLabel: "Install from Here",
      canSelectFiles: false,
      canSelectFolders: true,
    })) ?? [];
  if (chosen !== undefined && !(await isClone(chosen.fsPath))) {
    throw new Error(`${chosen.fsPath} is no clone of Tiro: choose the folder with pyproject.toml and server/tiro in it`);
  }
  return chosen?.fsPath;
}

async function isClone(folder: string): Promise<boolean> {
  const parts = ["pyproject.toml", join("server", "tiro", "__main__.py")];
  const found = await Promise.allSettled(parts.map((part) => access(join(folder, part))));
  return found.every(({ status }) => status === "fulfilled");
}

/** The exit code; undefined where the user ended it. */
async function runInTerminal(command: string): Promise<number | undefined> {
  const task = new vscode.Task(
    { type: "shell" },
    vscode.TaskScope.Workspace,
    TITLE,
    "Tiro",
    new vscode.ShellExecution(command),
  );
  task.presentationOptions = { reveal: vscode.TaskRevealKind.Always, focus: false };
  const ended = new Promise<number | undefined>((resolve) => {
    const listener = vscode.tasks.onDidEndTaskProcess(({ execution, exitCode }) => {
      if (execution.task.name === TITLE) {
        listener.dispose();
        resolve(exitCode);
      }
    });
  });
  await vscode.tasks.executeTask(task);
  return ended;
}

function quoted(text: string): string {
  return process.platform === "win32" ? `"${text}"` : `'${text.replaceAll("'", String.raw`'\''`)}'`;
}
