// What a user does in the workbench, as methods.
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";

import { changeSettings, CLEAR_NOTIFICATIONS, CLOSE_EDITORS, serverPids, until } from "../workbench.mjs";

/** Under names of this host VS Code's service worker answers with files of the machine. */
const FILES_HOST = ".vscode-resource.vscode-cdn.net";

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
    this.page.context().on("request", (request) => {
      const { hostname } = new URL(request.url());
      const isHere = ["", "127.0.0.1", "localhost"].includes(hostname); // "": the page's own data
      if (!isHere && !hostname.endsWith(FILES_HOST)) {
        this.foreignHosts.add(hostname);
      }
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

  /** Show the Tiro view by its icon in the activity bar, and wait until its script takes keys. */
  async openView() {
    await this.page.getByRole("tab", { name: "Tiro" }).first().click();
    await this.view.locator("body[data-state]").waitFor();
  }

  /** Show the files instead of the Tiro view. */
  async hideView() {
    await this.page.getByRole("tab", { name: /Explorer/ }).first().click();
    await this.prompt.waitFor({ state: "detached" });
  }

  /** Run a command by typing its name into the palette. */
  async command(title) {
    await this.#find("F1", `>${title}`, title);
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

  /** Answer the input box that has this title: the palette before it had none. */
  async fillIn(title, text) {
    const input = this.page.locator(`.quick-input-widget:has(.quick-input-title:text-is("${title}")) input`);
    await input.fill(text);
    await input.press("Enter");
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

  /** The row of the list above the input that Enter would take, as a screen reader finds it. */
  chosen(name) {
    const row = this.view.getByRole("option", { name, exact: true, selected: true });
    return row.and(this.view.locator("#mentions:has(~ #prompt[aria-activedescendant=mention0]) > #mention0"));
  }

  /** Go on by Tab so many times; what describes each element that has the focus then. */
  async tab(times, describe) {
    const reached = [];
    while (reached.length < times) {
      await this.page.keyboard.press("Tab");
      reached.push(await this.view.locator(":focus").evaluate(describe));
    }
    return reached;
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
    await until(async () => {
      const message = this.page.locator(".notification-toast .notification-list-item-message").first();
      await message.click({ timeout: 1_000 }).catch(() => undefined); // it may have gone by itself
      await this.page.keyboard.press("Escape");
      return (await this.page.locator(".notification-toast").count()) === 0;
    }, "the toasts are hidden");
  }

  /** The window loses the focus and gets it back, as far as the workbench can see. */
  async leaveAndComeBack() {
    for (const [event, focused] of [["blur", false], ["focus", true]]) {
      await this.page.evaluate(`document.hasFocus = () => ${focused}; window.dispatchEvent(new Event("${event}"))`);
    }
  }

  async dismissToasts() {
    const toasts = this.page.locator(".notification-toast");
    await this.press(CLEAR_NOTIFICATIONS, async () => (await toasts.count()) === 0, "the toasts are gone");
  }

  async closeEditors() {
    const tabs = this.page.locator(".tabs-container .tab");
    await this.press(CLOSE_EDITORS, async () => (await tabs.count()) === 0, "the editors are closed");
  }

  /** Save the active editor. */
  async save() {
    const isSaved = () => this.page.locator(".tab.active:not(.dirty)").isVisible();
    await this.press("Control+S", isSaved, "the file is saved");
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

  /** Wait until the page knows that no turn is running. */
  async idle() {
    await this.view.locator("body[data-state]:not([data-state='answering'])").waitFor();
  }

  /** Change settings of the machine and wait until the window goes by them: its title is one of them. */
  async changeSettings(changes) {
    this.#changes += 1;
    const title = `settings ${this.#changes}`;
    changeSettings(this.bench.out, "Machine", { ...changes, "window.title": title });
    await until(async () => (await this.page.title()).includes(title), "the window has the settings");
  }

  /** How often the extension started a server, as far as its log is written. */
  serverStarts() {
    const logs = `${this.bench.out}/user/logs`;
    const names = readdirSync(logs, { recursive: true }).filter((name) => /Tiro.*\.log$/.test(name));
    return names.flatMap((name) => readFileSync(join(logs, name), "utf8").match(/Starting .*serve/g) ?? []).length;
  }

  /** The one server of this run, another one than before; while it is replaced there are more, or none. */
  async serverPid(before) {
    const [pid] = await until(() => {
      const pids = serverPids(this.bench.out);
      return pids.length === 1 && pids[0] !== before ? pids : undefined;
    }, "one server runs");
    return pid;
  }

  /** Press a key that does no harm twice, until it has worked. */
  async press(key, hasWorked, label) {
    await until(async () => {
      await this.page.keyboard.press(key);
      return until(hasWorked, label, 1_000).catch(() => false);
    }, label);
  }

  /** Open a file by its name, and wait until the active editor holds it. */
  async openFile(name) {
    await this.#find("Control+P", name, name);
    await this.page.locator(`.tab.active[aria-label^="${name}"]`).waitFor();
    await this.page.locator(`.editor-group-container.active .editor-instance .monaco-editor[data-uri$="/${name}"]`).waitFor();
  }

  /**
   * Find something by its name and take it. The input closes when the focus moves on, and may not know
   * the name yet, so this is done until it works: the row is taken in the step that sees it.
   */
  async #find(key, text, label) {
    const input = this.page.locator(".quick-input-widget input");
    const name = this.page.locator(".quick-input-list .label-name").getByText(label, { exact: true });
    let timeout = 500;
    await until(async () => {
      timeout *= 2;
      await this.page.keyboard.press(key);
      const isSeen = await input
        .fill(text, { timeout })
        .then(() => name.first().waitFor({ timeout }))
        .then(() => true, () => false);
      const isTaken = isSeen && (await this.page.evaluate(takeRow, label));
      if (!isTaken && (await input.isVisible())) {
        await this.page.keyboard.press("Escape");
      }
      return isTaken;
    }, `${label} is found`);
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

  /** Take a picture, unless only that of a failure is wanted. */
  async shot(name) {
    this.#shots += 1;
    if (process.env.TIRO_SHOTS === "failed" && name !== "failed") {
      return;
    }
    const number = String(this.#shots).padStart(2, "0");
    await this.page.screenshot({ path: join(this.bench.out, `${number}-${name}.png`) });
  }
}

/** Click on the row of the quick input that has this name, if it is there; runs in the page. */
function takeRow(label) {
  const { document, MouseEvent } = globalThis;
  const names = [...document.querySelectorAll(".quick-input-list .label-name")];
  const name = names.find((one) => one.textContent === label && one.checkVisibility());
  for (const type of ["mousedown", "mouseup", "click"]) {
    name?.dispatchEvent(new MouseEvent(type, { bubbles: true, cancelable: true, view: globalThis, detail: 1 }));
  }
  return name !== undefined;
}
