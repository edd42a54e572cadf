import { chmodSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

import { afterEach, beforeEach, expect, test } from "vitest";

import { installCommand } from "../../src/install";
import { findServerCommand, ServerMissingError, ServerNotFoundError, startServer } from "../../src/launch";

let folder: string;

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "tiro-launch-"));
});

afterEach(() => {
  rmSync(folder, { recursive: true, force: true });
});

/** A program in the folder, which is all of the PATH. */
function program(name: string, text: string, mode = 0o755): string {
  const path = join(folder, name);
  writeFileSync(path, `#!/bin/sh\n${text}\n`);
  chmodSync(path, mode);
  return path;
}

function find(setting: string[] = []): Promise<string[]> {
  return findServerCommand(setting, { PATH: folder, HOME: folder });
}

test("the setting comes first, and its arguments stay as they are", async () => {
  program("tiro", "exit 0");
  const mine = program("mine", "exit 0");
  expect(await find([mine, "serve", "a b"])).toEqual([mine, "serve", "a b"]);
});

test("a setting without a folder is looked up on the PATH", async () => {
  const mine = program("mine", "exit 0");
  expect(await find(["mine"])).toEqual([mine]);
});

test("tiro on the PATH comes before Python", async () => {
  const tiro = program("tiro", "exit 0");
  program("python3", "exit 0");
  expect(await find()).toEqual([tiro, "serve"]);
});

test("a Python is taken only if it can import tiro", async () => {
  program("python3", "exit 1");
  const python = program("python", "exit 0");
  expect(await find()).toEqual([python, "-m", "tiro", "serve"]);
});

test("with nothing to run, the error says what to install and what to set", async () => {
  const failure = await find().catch((error: unknown) => error);
  expect(failure).toBeInstanceOf(ServerNotFoundError);
  expect(String(failure)).toMatch(/pipx install .*tiro\.server\.command/);
});

test("a setting that cannot be run is named, and nothing else is tried", async () => {
  program("tiro", "exit 0");
  const plain = program("plain", "exit 0", 0o644);
  for (const setting of [plain, join(folder, "absent"), "absent"]) {
    await expect(find([setting])).rejects.toThrow(setting);
  }
});

test("how the server ended and its last words are known", async () => {
  const server = await startServer([program("dies", "echo a trace >&2; echo oh no >&2; exit 3")], folder);
  expect(await server.ended).toBe("exit code 3");
  expect(server.lastWords()).toBe("oh no");
  const killed = await startServer([program("waits", "exec sleep 60")], folder);
  killed.child.kill("SIGKILL");
  expect(await killed.ended).toBe("signal SIGKILL");
});

test("a program that cannot be started is an error, not a crash", async () => {
  await expect(startServer([join(folder, "absent")], folder)).rejects.toThrow(ServerNotFoundError);
});

test("where pipx puts it is looked into, since an editor started by a desktop has no such PATH", async () => {
  const home = join(folder, "home");
  mkdirSync(join(home, ".local/bin"), { recursive: true });
  const tiro = program("home/.local/bin/tiro", "exit 0");
  expect(await findServerCommand([], { PATH: folder, HOME: home })).toEqual([tiro, "serve"]);
});

test("that nothing is installed is told from a setting that is wrong", async () => {
  await expect(findServerCommand([], { PATH: folder, HOME: folder })).rejects.toThrow(ServerMissingError);
  await expect(find(["mine"])).rejects.not.toThrow(ServerMissingError);
});

test("it is installed with pipx where that is there, else in an environment of its own", async () => {
  program("python3", "exit 0");
  expect(await installCommand("/home/me/it's here", { PATH: folder })).toBe(
    String.raw`python3 -m venv ~/.venvs/tiro && ~/.venvs/tiro/bin/pip install '/home/me/it'\''s here[local]'`,
  );
  program("pipx", "exit 0");
  expect(await installCommand("/src/tiro", { PATH: folder })).toBe("pipx install --force '/src/tiro[local]'");
});
