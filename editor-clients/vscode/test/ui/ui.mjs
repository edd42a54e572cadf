// What a user does in the workbench, as methods.
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";

import { changeSettings, until } from "../workbench.mjs";

export class Ui {
  #shots = 0;
  #changes = 0;

  constructor(bench) {
    this.bench = bench;
    this.page = bench.page;
    this.provider = bench.provider;
    /** Hosts that anything in the window tried to reach, loopback aside. */
    this.foreignHosts = new Set();
    /** What the page's console and the content security policy complained about. */
    this.complaints = [];
  }

  /** Open the window and wait until Tiro is ready. */
  async open() {
    await this.page.route("**/*", (route) => {
      const { hostname } = new URL(route.request().url());
      if (["127.0.0.1", "localhost"].includes(hostname)) {
        return route.continue();
      }
      this.foreignHosts.add(hostname);
      return route.abort();
    });
    this.page.on("console", (message) => {
      if (/Content Security Policy|chat\.js/.test(message.text()) && message.type() === "error") {
        this.complaints.push(message.text());
      }
    });
    await this.page.goto(this.bench.url);
    await this.ready();
  }

  async ready() {
    await this.page.locator(".monaco-workbench").waitFor();
    await this.statusBar.filter({ hasNotText: "starting" }).waitFor();
  }

  get statusBar() {
    return this.page.locator(".statusbar-item").filter({ hasText: "Tiro" }).first();
  }

  /** The inside of the Tiro view. */
  get view() {
    return this.page.frameLocator("iframe.webview.ready").frameLocator("iframe#active-frame");
  }

  get prompt() {
    return this.view.getByLabel("Ask Tiro", { exact: true });
  }

  get prompts() {
    return this.view.locator(".item.user");
  }

  /** The texts that answer the newest prompt. */
  get answers() {
    return this.view.locator(".item.user:not(:has(~ .item.user)) ~ .item.text");
  }

  /** Notices in the transcript with this text. */
  notices(text) {
    return this.view.locator(".notice").filter({ hasText: text });
  }

  /** Failures that the transcript tells. */
  get alerts() {
    return this.view.locator("#items").getByRole("alert");
  }

  /** The title of the session, beside the name of the view. */
  titled(text) {
    return this.page.locator(".pane-header .description").filter({ hasText: text }).first();
  }

  /** Show the Tiro view by its icon in the activity bar. */
  async openView() {
    await this.page.getByRole("tab", { name: "Tiro" }).first().click();
    await this.prompt.waitFor();
  }

  /** Show the files instead of the Tiro view. */
  async hideView() {
    await this.page.getByRole("tab", { name: /Explorer/ }).first().click();
    await this.prompt.waitFor({ state: "detached" });
  }

  /** Run a command by typing its name into the palette, which closes when the focus moves on. */
  async command(title) {
    const input = this.page.locator(".quick-input-widget input");
    const label = this.page.locator(".quick-input-list .label-name").getByText(title, { exact: true });
    await this.#retry(`${title} is chosen`, async (timeout) => {
      await this.page.keyboard.press("F1");
      await input.fill(`>${title}`, { timeout });
      await label.first().click({ timeout });
    });
  }

  /** A row of the quick pick that is open. */
  row(text) {
    return this.page.locator(".quick-input-list .monaco-list-row").filter({ hasText: text }).first();
  }

  /** Answer the quick pick that opens; a row that is seen at once tells it from the one before. */
  async pick(text, seen = text) {
    await this.row(seen).waitFor();
    await this.page.locator(".quick-input-widget input").fill(text);
    await this.row(text).click();
  }

  /** Choose from the menu of an item: one that has just opened takes no click, and stays. */
  async chooseFor(item, name) {
    await item.click({ button: "right" });
    const entry = this.page.getByRole("menuitem", { name, exact: true }).first();
    await entry.waitFor();
    const choose = async () => {
      await entry.click({ timeout: 1_000 }).catch(() => undefined);
      return entry.waitFor({ state: "detached", timeout: 100 }).then(() => true, () => false);
    };
    await until(choose, `${name} is chosen`);
  }

  /** Close a form without applying it; until it is gone it may take the focus from what comes next. */
  async dropForm(name) {
    await this.command("Tiro: Drop");
    await this.page.locator(`.tab[aria-label^="${name}"]`).waitFor({ state: "detached" });
  }

  toast(text) {
    return this.page.locator(".notification-toast").filter({ hasText: text }).first();
  }

  /** The question in the view. */
  question(text) {
    return this.view.getByRole("alertdialog").filter({ hasText: text });
  }

  /** Answer a question in the view, as soon as it takes clicks. */
  async answer(text, label) {
    const question = this.question(text).and(this.view.locator("[data-calm]"));
    await question.getByRole("button", { name: label }).click();
  }

  /** Put the toasts away as VS Code does by itself after a while: what they ask still waits. */
  async hideToasts() {
    await this.page.locator(".notification-toast .notification-list-item-message").first().click();
    await this.page.keyboard.press("Escape");
    await until(async () => (await this.page.locator(".notification-toast").count()) === 0, "the toasts are hidden");
  }

  /** The window loses the focus and gets it back, as far as the workbench can see. */
  async leaveAndComeBack() {
    for (const [event, focused] of [["blur", false], ["focus", true]]) {
      await this.page.evaluate(`document.hasFocus = () => ${focused}; window.dispatchEvent(new Event("${event}"))`);
    }
  }

  async dismissToasts() {
    await this.command("Notifications: Clear All Notifications");
    await until(async () => (await this.page.locator(".notification-toast").count()) === 0, "the toasts are gone");
  }

  /** Type a prompt into the view and send it. */
  async send(text) {
    await this.prompt.fill(text);
    await this.prompt.press("Enter");
  }

  /** Send a prompt that is taken: nothing is being answered, and afterwards it is in the transcript. */
  async ask(text) {
    await this.idle();
    const before = await this.lastPrompt();
    await this.send(text);
    await until(async () => (await this.lastPrompt()) !== before, `"${text}" is in the transcript`);
  }

  /** Which prompt is the newest; how many are painted says nothing, since the first ones leave the page. */
  async lastPrompt() {
    const [id = ""] = await this.prompts.evaluateAll((all) => all.slice(-1).map((one) => one.dataset.id));
    return id;
  }

  /** Wait until the last answer to the newest prompt contains the text, and no turn is running. */
  async answered(text) {
    const last = this.answers.last();
    await last.filter({ hasText: text }).waitFor();
    await this.idle();
    return last;
  }

  /** Wait until no turn is running. */
  async idle() {
    await this.view.locator("body:not([data-state='answering'])").waitFor();
  }

  /** Change settings of the machine and wait until the window goes by them: its title is one of them. */
  async changeSettings(changes) {
    this.#changes += 1;
    const title = `settings ${this.#changes}`;
    changeSettings(this.bench.out, "Machine", { ...changes, "window.title": title });
    await until(async () => (await this.page.title()).includes(title), "the window has the settings");
  }

  /** How often the extension started a server, by its log. */
  serverStarts() {
    const logs = `${this.bench.out}/user/logs`;
    const names = readdirSync(logs, { recursive: true }).filter((name) => /Tiro.*\.log$/.test(name));
    return names.flatMap((name) => readFileSync(join(logs, name), "utf8").match(/Starting .*serve/g) ?? []).length;
  }

  /** Open a file by its name, which VS Code may not find yet where it has just come. */
  async openFile(name) {
    const first = this.page.locator(".quick-input-list .monaco-list-row").first(); // what Enter takes
    await this.#retry(`${name} is found`, async (timeout) => {
      await this.page.keyboard.press("Control+P");
      await this.page.locator(".quick-input-widget input").fill(name);
      await first.filter({ hasText: name }).waitFor({ timeout });
    });
    await this.page.keyboard.press("Enter");
    await this.page.locator(`.tab[aria-label^="${name}"]`).first().waitFor();
  }

  /** Do something in the quick input until it works, each time with more patience. */
  async #retry(label, action) {
    let timeout = 500;
    await until(async () => {
      timeout *= 2;
      return action(timeout).then(() => true, () => this.page.keyboard.press("Escape"));
    }, label);
  }

  /** The lines of the active editor. */
  get editor() {
    return this.page.locator(".editor-group-container.active .editor-instance .view-lines").first();
  }

  /** Type into the active editor, after all that is there. */
  async typeAtEnd(text) {
    await this.editor.click();
    await this.page.keyboard.press("Control+End");
    await this.page.keyboard.type(text);
  }

  async shot(name) {
    this.#shots += 1;
    const number = String(this.#shots).padStart(2, "0");
    await this.page.screenshot({ path: join(this.bench.out, `${number}-${name}.png`) });
  }
}
