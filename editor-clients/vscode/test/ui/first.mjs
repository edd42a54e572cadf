// The first day: no server yet and no folder, then one that is not trusted yet, and VS Code's own
// Chat.
import assert from "node:assert/strict";
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname } from "node:path";

import { environment, EXTENSION, SERVER_COMMAND, serverPids, until } from "../workbench.mjs";

const CLONE = dirname(dirname(EXTENSION));
const KEY = "sk-first-0123456789abcdefghij";

export const FIRST_BENCH = {
  machine: {},
  // No Tiro can be found.
  env: { PATH: "/usr/local/bin:/usr/bin:/bin", PYTHONPATH: "" },
  settings: {
    "chat.disableAIFeatures": false,
    "security.workspace.trust.enabled": true,
    "security.workspace.trust.startupPrompt": "never",
  },
};

export const FIRST = {
  "without a server one notification says so and offers to install it": async (ui) => {
    const { origin } = new URL(ui.bench.url);
    ui.bench.url = `${origin}/?ew=true`;
    await ui.open();
    await ui.toast("The Tiro server is not installed").waitFor();
    await ui.statusBar.filter({ hasText: "stopped" }).waitFor();
    assert.equal(await ui.page.locator(".notification-toast").count(), 1);
    await ui.shot("not-installed");
  },

  "the walkthrough leads through the first day": async (ui) => {
    await ui.command("Tiro: Get Started");
    await ui.page.locator(".getting-started-step").getByText("Install the server").waitFor();
    assert.equal(await ui.page.locator(".getting-started-step").count(), 6);
    await ui.shot("walkthrough");
  },

  "an installation runs in a terminal, and its failure is told": async (ui) => {
    const home = `${ui.bench.out}/home`;
    writeFileSync(`${home}/.venvs`, "in the way of the environment that is made there");
    mkdirSync(`${home}/begins-here`);
    await ui.toast("The Tiro server is not installed").getByRole("button", { name: "Install Server" }).click();
    const input = ui.page.locator(".quick-input-widget input");
    await ui.row("begins-here").waitFor(); // the dialog has arrived where it begins, and takes what is typed
    await input.fill(`${CLONE}/`);
    await ui.row("editor-clients").waitFor(); // it has arrived there
    await ui.page.locator(".quick-input-widget").getByRole("button", { name: "Install from Here" }).click();
    await ui.page.locator(".terminal-wrapper.active").waitFor();
    await ui.toast("The server was not installed").waitFor();
    await ui.shot("not-installed-either");
    await ui.dismissToasts();
  },

  "a server that is set is started, with no folder open": async (ui) => {
    const { PYTHONPATH } = environment(ui.bench.out);
    const command = ["/usr/bin/env", `PYTHONPATH=${PYTHONPATH}`, ...SERVER_COMMAND];
    await ui.changeSettings({ "tiro.server.command": command });
    await ui.statusBar.filter({ hasText: "echo" }).waitFor();
    await ui.openView();
    await ui.ask("no folder");
    await ui.answered("You said: no folder");
  },

  "the walkthrough ticks its first step by itself, since a server runs": async (ui) => {
    await ui.command("Tiro: Get Started");
    const box = ui.page.locator('.getting-started-step [role="checkbox"][data-done-step-id$="server"]').first();
    await until(async () => (await box.getAttribute("aria-checked")) === "true", "the step is ticked");
    await ui.shot("walkthrough-ticked");
    await ui.closeEditors();
  },

  "a key goes into the secret storage and the server's environment, and nowhere else (P9, B52)": async (ui) => {
    const keyOf = ([pid]) => /OPENAI_API_KEY=([^\0]*)/.exec(environOf(pid))?.[1];
    await ui.command("Tiro: Set API Key");
    await ui.pick("OpenAI");
    await ui.page.locator('.quick-input-widget input[type="password"]').fill(KEY);
    await ui.page.keyboard.press("Enter");
    const running = () => serverPids(ui.bench.out);
    await until(() => running().length === 1 && keyOf(running()) === KEY, "the server has the key");
    await ui.statusBar.filter({ hasText: "echo" }).waitFor();
    const { out } = ui.bench;
    const places = ["user", "tiro", "home", "extensions"].map((name) => `${out}/${name}`);
    assert.deepEqual(places.flatMap((folder) => filesWith(KEY, folder)), []);
    await ui.command("Tiro: Forget API Key");
    await ui.pick("OPENAI_API_KEY");
    await until(() => running().length === 1 && keyOf(running()) === undefined, "the server runs without it");
    await ui.statusBar.filter({ hasText: "echo" }).waitFor();
  },

  "a window on a folder is offered the newest session": async (ui) => {
    await ui.page.goto(`${new URL(ui.bench.url).origin}/?folder=${ui.bench.out}/workspace`);
    await ui.ready();
    await ui.openView();
    const offer = ui.notices("The newest saved session is");
    await offer.waitFor();
    await ui.shot("offer");
    await offer.getByRole("button", { name: "Continue It" }).click();
    await ui.prompts.filter({ hasText: "no folder" }).waitFor();
  },

  "a workspace that is not trusted has reading tools only, until it is (P8)": async (ui) => {
    const tools = () => ui.provider.requests.at(-1).tools.map((tool) => tool.function.name);
    await ui.ask("what may you do?");
    await ui.answered("You said: what may you do?");
    await ui.view.getByText("This workspace is not trusted: Tiro reads its files and answers, but changes none and runs no command.").waitFor();
    await ui.shot("not-trusted");
    assert.ok(tools().includes("read_file") && !tools().includes("edit_file"), tools().join(" "));
    const old = await ui.serverPid();
    await ui.view.getByRole("button", { name: "Manage Workspace Trust" }).click();
    await ui.page.getByRole("button", { name: "Trust", exact: true }).first().click();
    await until(async () => (await ui.serverPid()) !== old, "another server runs");
    await ui.ready();
    await ui.view.getByRole("button", { name: "Manage Workspace Trust" }).waitFor({ state: "hidden" });
    await ui.closeEditors();
    await ui.ask("and now?");
    await ui.answered("You said: and now?");
    assert.ok(tools().includes("edit_file"), tools().join(" "));
  },

  "@tiro answers in VS Code's own Chat, in the same session": async (ui) => {
    const chat = new NativeChat(ui);
    await chat.open();
    await chat.ask("@tiro slow words");
    await chat.answer.filter({ hasText: "word2" }).waitFor();
    await ui.shot("native-streaming");
    ui.provider.finish();
    await chat.answer.filter({ hasText: "word199" }).waitFor();
    await ui.answered("word199");
    await ui.prompts.last().filter({ hasText: "slow words" }).waitFor();
    await chat.ask("markdown please");
    await chat.answer.filter({ hasText: "the documentation" }).waitFor();
    await ui.shot("native-chat");
    const file = `${ui.bench.out}/workspace/b.txt`;
    writeFileSync(file, "one b\n");
    await chat.ask("edit b.txt");
    await chat.answer.filter({ hasText: "edit_file b.txt (asks for your permission)" }).waitFor();
    await ui.answer("+1 −1 lines in", "Allow Once");
    await chat.answer.filter({ hasText: "You said: edit" }).waitFor();
    assert.equal(readFileSync(file, "utf8"), "ONE b\n");
    await chat.answer.getByRole("button", { name: "Undo Edits" }).click();
    await until(() => readFileSync(file, "utf8") === "one b\n", "the edit is undone");
    await ui.dismissToasts();
  },

  "a file that is named in the Chat goes along": async (ui) => {
    const chat = new NativeChat(ui);
    await ui.openFile("a.py");
    await ui.command("Chat: Add File to Chat");
    await chat.attached("a.py").waitFor();
    await chat.ask("what is this file");
    await chat.answer.filter({ hasText: "You said: what is" }).waitFor();
    assert.match(JSON.stringify(ui.provider.requests.at(-1).messages.at(-1)), /def greet/);
    await ui.prompts.last().getByText("a.py").first().waitFor();
  },

  "to stop it in the Chat cancels the turn, and a second prompt is refused (B43, B45)": async (ui) => {
    const chat = new NativeChat(ui);
    await ui.ask("slow");
    await ui.answers.last().filter({ hasText: "word3" }).waitFor();
    await chat.ask("too early");
    await chat.answer.filter({ hasText: "Tiro is still answering" }).waitFor();
    await ui.view.getByRole("button", { name: "Cancel" }).click();
    await ui.view.locator("body:not([data-state='answering'])").waitFor();
    await chat.ask("slow");
    await chat.answer.filter({ hasText: "word3" }).waitFor();
    await ui.page.locator(".interactive-input-part").getByRole("button", { name: /^(Cancel|Stop)/ }).first().click();
    await ui.view.locator("body:not([data-state='answering'])").waitFor();
    await ui.answers.last().getByText("Interrupted").waitFor();
    await chat.ask("refuse this");
    await chat.answer.filter({ hasText: "refused by the script" }).waitFor();
  },

  "nothing left the machine on the first day": (ui) => {
    assert.deepEqual([...ui.foreignHosts], []);
  },
};

/** VS Code's own Chat view. */
class NativeChat {
  constructor(ui) {
    this.ui = ui;
    this.page = ui.page;
  }

  async open() {
    await this.ui.command("Chat: Open Chat");
    await this.input.waitFor();
  }

  get input() {
    return this.page.locator(".interactive-input-part .monaco-editor").first();
  }

  /** The newest answer. */
  get answer() {
    return this.page.locator(".interactive-response").last();
  }

  /** A file that is to go along with the next prompt. */
  attached(name) {
    return this.page.locator(".interactive-input-part").getByText(name).first();
  }

  /** Ask when the last answer is over: until then the Chat takes a prompt for more of the same. */
  async ask(prompt) {
    await until(async () => (await this.page.locator(".chat-response-loading").count()) === 0, "the Chat is idle");
    await this.input.click();
    await this.page.keyboard.type(prompt);
    await this.page.keyboard.press("Escape"); // the list of completions
    await this.page.keyboard.press("Enter");
  }
}

/** The environment of a process; of one that has just ended it is a key that nobody has. */
function environOf(pid) {
  try {
    return readFileSync(`/proc/${pid}/environ`, "utf8");
  } catch {
    return "OPENAI_API_KEY=gone";
  }
}

/** What a file holds; one that was there for a moment only holds nothing. */
function contentOf(path) {
  try {
    return readFileSync(path, "latin1");
  } catch {
    return "";
  }
}

/** The files below a folder that hold a text. */
function filesWith(text, folder) {
  return readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => `${entry.parentPath}/${entry.name}`)
    .filter((path) => contentOf(path).includes(text));
}
