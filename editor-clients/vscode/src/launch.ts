/** Finding the `tiro serve` command and starting it as a child process. */

import { type ChildProcess, spawn } from "node:child_process";
import { constants } from "node:fs";
import { access } from "node:fs/promises";
import { homedir } from "node:os";
import { delimiter, isAbsolute, join } from "node:path";

const PROBE_TIMEOUT_MS = 10_000;
const STDERR_TAIL_CHARACTERS = 2_000;

/** No command was found, or the one in the settings cannot be started. */
export class ServerNotFoundError extends Error {}

/** Nothing is set and nothing is installed. */
export class ServerMissingError extends ServerNotFoundError {}

/** Where `pipx` and the README put it; an editor that was not started by a shell has no such PATH. */
const USUAL_PLACES = [".local/bin/tiro", ".venvs/tiro/bin/tiro", String.raw`.venvs\tiro\Scripts\tiro.exe`];

/** A running server process and the last lines it wrote to stderr. */
export interface ServerProcess {
  child: ChildProcess;
  /** The last line on stderr, which says best why it ended. */
  lastWords(): string;
  /** How it ended, such as `exit code 1` or `signal SIGKILL`; resolves when it has ended. */
  ended: Promise<string>;
}

/**
 * The command line that starts the server: the setting if there is one, else `tiro` from PATH or
 * where it is usually installed, else a Python from PATH that can import tiro.
 */
export async function findServerCommand(
  setting: readonly string[],
  env: NodeJS.ProcessEnv = process.env,
): Promise<string[]> {
  const [program, ...args] = setting;
  if (program !== undefined) {
    return [await resolveSetting(expandHome(program), env), ...args];
  }
  const tiro = (await findOnPath("tiro", env)) ?? (await findInHome(env));
  if (tiro !== undefined) {
    return [tiro, "serve"];
  }
  for (const name of ["python3", "python"]) {
    const python = await findOnPath(name, env);
    if (python !== undefined && (await runs([python, "-m", "tiro", "--version"], env))) {
      return [python, "-m", "tiro", "serve"];
    }
  }
  throw new ServerMissingError(
    "The Tiro server is not installed: install it from a clone of Tiro (as “pipx install '.[local]'” does), " +
      "or set tiro.server.command to the command that starts it",
  );
}

/** Start the server; resolves when the process runs, rejects when it cannot be started. */
export async function startServer(
  command: readonly string[],
  cwd: string | undefined,
  env: NodeJS.ProcessEnv = process.env,
): Promise<ServerProcess> {
  const [program = "", ...args] = command;
  const child = spawn(program, args, {
    env,
    stdio: ["pipe", "pipe", "pipe"],
    ...(cwd === undefined ? {} : { cwd }),
  });
  await new Promise<void>((resolve, reject) => {
    child.once("spawn", resolve);
    child.once("error", (error) => {
      reject(new ServerNotFoundError(`The Tiro server could not be started: ${error.message}`));
    });
  });
  // The death of the process surfaces as the end of the connection; these only must not throw.
  child.on("error", () => undefined);
  child.stdin.on("error", () => undefined);
  let tail = "";
  child.stderr.on("data", (chunk: Buffer) => {
    tail = (tail + chunk.toString("utf8")).slice(-STDERR_TAIL_CHARACTERS);
  });
  const ended = new Promise<string>((resolve) => {
    child.once("exit", (code, signal) => {
      resolve(signal === null ? `exit code ${code ?? "unknown"}` : `signal ${signal}`);
    });
  });
  return { child, lastWords: () => tail.trim().split("\n").at(-1) ?? "", ended };
}

async function resolveSetting(program: string, env: NodeJS.ProcessEnv): Promise<string> {
  const isPath = isAbsolute(program) || /[\\/]/.test(program);
  const found = isPath ? await executable(program) : await findOnPath(program, env);
  if (found === undefined) {
    throw new ServerNotFoundError(
      `The command ${program} in tiro.server.command does not exist or cannot be run: ` +
        "correct the setting, then restart the server",
    );
  }
  return found;
}

async function findInHome(env: NodeJS.ProcessEnv): Promise<string | undefined> {
  const home = env.HOME ?? homedir();
  for (const place of USUAL_PLACES) {
    const found = await executable(join(home, place));
    if (found !== undefined) {
      return found;
    }
  }
  return undefined;
}

/** The path of a program, by the PATH of this environment. */
export async function findOnPath(name: string, env: NodeJS.ProcessEnv): Promise<string | undefined> {
  const suffixes = process.platform === "win32" ? [".exe", ".cmd", ".bat"] : [""];
  for (const directory of (env.PATH ?? "").split(delimiter).filter(Boolean)) {
    for (const suffix of suffixes) {
      const found = await executable(join(directory, name + suffix));
      if (found !== undefined) {
        return found;
      }
    }
  }
  return undefined;
}

async function executable(path: string): Promise<string | undefined> {
  try {
    await access(path, constants.X_OK);
    return path;
  } catch {
    return undefined;
  }
}

function runs(command: readonly string[], env: NodeJS.ProcessEnv): Promise<boolean> {
  const [program = "", ...args] = command;
  return new Promise((resolve) => {
    const child = spawn(program, args, { env, stdio: "ignore", timeout: PROBE_TIMEOUT_MS });
    child.once("error", () => {
      resolve(false);
    });
    child.once("exit", (code) => {
      resolve(code === 0);
    });
  });
}

function expandHome(path: string): string {
  return path.startsWith("~/") ? join(homedir(), path.slice(2)) : path;
}
