/**
 * Documents whose text the user edits and then applies or drops: a resize, the memory, a message.
 *
 * There is at most one of a name. What is refused when it is applied stays open to be mended.
 */

import * as vscode from "vscode";

export const FORM_SCHEME = "tiro-form";

/** A text to edit, and what is done with it. */
export interface Form {
  text: string;
  /** What it is shown beside, as a diff. */
  against?: vscode.Uri;
  /** Throws what is wrong with the text. */
  apply: (text: string) => Promise<void>;
}

interface OpenForm extends Form {
  uri: vscode.Uri;
  /** The text of the last save, and when that was. */
  saved: Uint8Array;
  mtime: number;
}

export class Forms implements vscode.FileSystemProvider, vscode.Disposable {
  readonly #changed = new vscode.EventEmitter<vscode.FileChangeEvent[]>();
  readonly onDidChangeFile = this.#changed.event;
  readonly #registration: vscode.Disposable;
  readonly #forms = new Map<string, OpenForm>();
  #made = 0;

  constructor() {
    this.#registration = vscode.workspace.registerFileSystemProvider(FORM_SCHEME, this, {
      isCaseSensitive: true,
    });
  }

  /** Whether a form of this name may be opened now: the user is asked before edits of one go. */
  async makeWay(name: string): Promise<boolean> {
    const form = this.#forms.get(name);
    const document = form && documentOf(form.uri);
    if (form === undefined || document === undefined) {
      return true;
    }
    if (document.getText() !== form.text && !(await mayDrop(name))) {
      await vscode.window.showTextDocument(document);
      return false;
    }
    await this.#close(name);
    return true;
  }

  /** Show a form; the one of this name that was there before is gone. */
  async open(name: string, form: Form): Promise<void> {
    await this.#close(name);
    this.#made += 1;
    const uri = vscode.Uri.from({ scheme: FORM_SCHEME, path: `/${this.#made}/${name}` });
    this.#forms.set(name, { ...form, uri, saved: Buffer.from(form.text), mtime: Date.now() });
    if (form.against !== undefined) {
      const title = `${name} (as it would be)`;
      await vscode.commands.executeCommand("vscode.diff", form.against, uri, title, { preview: false });
      return;
    }
    const document = await vscode.workspace.openTextDocument(uri);
    await vscode.window.showTextDocument(document, { preview: false });
  }

  /** Apply the form of this name, else the one in the active editor; it is closed then. */
  async apply(name = activeName()): Promise<void> {
    const form = this.#forms.get(name);
    const document = form && documentOf(form.uri);
    if (form === undefined || document === undefined) {
      throw new Error("There is nothing to apply here: preview a resize, or edit the memory or a message first");
    }
    await form.apply(document.getText());
    await this.#close(name);
  }

  /** Close the form in the active editor; nothing is changed. */
  async drop(): Promise<void> {
    await this.#close(activeName());
  }

  stat(uri: vscode.Uri): vscode.FileStat {
    const { saved, mtime } = this.#find(uri);
    return { type: vscode.FileType.File, ctime: 0, mtime, size: saved.length };
  }

  readFile(uri: vscode.Uri): Uint8Array {
    return this.#find(uri).saved;
  }

  /** A save keeps the text, and applies nothing. */
  writeFile(uri: vscode.Uri, saved: Uint8Array): void {
    const form = this.#find(uri);
    form.saved = saved;
    form.mtime += 1;
  }

  watch(): vscode.Disposable {
    return new vscode.Disposable(() => undefined);
  }

  readDirectory(): [string, vscode.FileType][] {
    return [];
  }

  createDirectory(): never {
    throw vscode.FileSystemError.NoPermissions();
  }

  delete(): never {
    throw vscode.FileSystemError.NoPermissions();
  }

  rename(): never {
    throw vscode.FileSystemError.NoPermissions();
  }

  dispose(): void {
    this.#registration.dispose();
    this.#changed.dispose();
  }

  #find(uri: vscode.Uri): OpenForm {
    const form = this.#forms.get(nameOf(uri));
    if (form?.uri.toString() !== uri.toString()) {
      throw vscode.FileSystemError.FileNotFound(uri);
    }
    return form;
  }

  /** Saved first, so that VS Code does not ask what to do with the text. */
  async #close(name: string): Promise<void> {
    const form = this.#forms.get(name);
    if (form === undefined) {
      return;
    }
    await documentOf(form.uri)?.save();
    await vscode.window.tabGroups.close(tabsOf(form.uri));
    this.#forms.delete(name);
  }
}

function mayDrop(name: string): Thenable<boolean> {
  const text = `What you edited in ${name} was not applied yet`;
  return vscode.window
    .showWarningMessage(text, { modal: true }, "Drop It")
    .then((choice) => choice === "Drop It");
}

function activeName(): string {
  const uri = vscode.window.activeTextEditor?.document.uri;
  return uri?.scheme === FORM_SCHEME ? nameOf(uri) : "";
}

function nameOf(uri: vscode.Uri): string {
  return uri.path.split("/").at(-1) ?? "";
}

function documentOf(uri: vscode.Uri): vscode.TextDocument | undefined {
  return vscode.workspace.textDocuments.find((one) => one.uri.toString() === uri.toString());
}

function tabsOf(uri: vscode.Uri): vscode.Tab[] {
  const tabs = vscode.window.tabGroups.all.flatMap((group) => group.tabs);
  return tabs.filter(({ input }) => uriOf(input)?.toString() === uri.toString());
}

function uriOf(input: unknown): vscode.Uri | undefined {
  if (input instanceof vscode.TabInputTextDiff) {
    return input.modified;
  }
  return input instanceof vscode.TabInputText ? input.uri : undefined;
}
