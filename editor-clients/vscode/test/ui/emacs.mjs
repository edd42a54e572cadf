// A real Emacs with our client, on the config directory of the workbench: asked and looked at.
import { execFile, spawn } from "node:child_process";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";

import { environment, SERVER_COMMAND, until } from "../workbench.mjs";

const CLIENT = fileURLToPath(new URL("../../../emacs", import.meta.url));
const run = promisify(execFile);

export class Emacs {
  #out;
  #child;

  constructor(out) {
    this.#out = out;
    this.socket = `${out}/tmp/emacs.socket`;
  }

  /** Start it and open the chat. */
  async open() {
    const command = SERVER_COMMAND.map((word) => JSON.stringify(word)).join(" ");
    const quiet = "(setq native-comp-deferred-compilation nil)"; // in a new home it would compile its own library
    const setup = `(progn ${quiet} (require 'tiro) (setq tiro-server-command '(${command})))`;
    this.#child = spawn("emacs", ["-Q", `--fg-daemon=${this.socket}`, "-L", CLIENT, "--eval", setup], {
      cwd: `${this.#out}/workspace`,
      env: environment(this.#out),
      stdio: "ignore",
    });
    await until(() => this.does("t").then(Boolean, () => false), "Emacs answers");
    await this.does("(tiro)");
  }

  /** What an expression gives, as Emacs prints it. */
  async does(expression) {
    const { stdout } = await run("emacsclient", ["-s", this.socket, "--eval", expression]);
    return stdout.trim();
  }

  /** The text of the chat, as a person reads it there. */
  async chat() {
    const text = await this.does('(with-current-buffer "*tiro*" (buffer-substring-no-properties (point-min) (point-max)))');
    return JSON.parse(text.replaceAll("\n", String.raw`\n`));
  }

  /** Ask, and wait for the end of the answer. */
  async ask(prompt) {
    await this.does(`(tiro-ask ${JSON.stringify(prompt)})`);
    await this.idle();
  }

  /** Wait until no turn of its is running. */
  async idle() {
    await until(async () => (await this.does("(tiro-session-turn tiro-session)")) === "nil", "Emacs' turn is over");
  }

  /** End it and its server, in order. */
  async close() {
    const gone = new Promise((resolve) => this.#child.once("exit", resolve));
    await this.does("(kill-emacs)").catch(() => undefined);
    await gone;
  }
}
