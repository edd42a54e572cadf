/** What goes along with the next prompt: the selection, and what the user attached by hand. */

import * as vscode from "vscode";

import { automaticAttachment } from "./config";
import { attachmentLabel } from "./items";
import type { Attachment } from "./protocol";
import type { Chip } from "./viewMessages";
import { rangeOf } from "./range";

const SELECTION_ID = "selection";

/** What the user says, and what goes along. */
export interface Prompt {
  prompt: string;
  attachments: Attachment[];
}

export class Attachments implements vscode.Disposable {
  readonly #changed = new vscode.EventEmitter<void>();
  readonly onChanged = this.#changed.event;
  readonly #subscriptions: vscode.Disposable[];
  #attached: { id: string; attachment: Attachment }[] = [];
  #isSelectionOn = true;
  #made = 0;

  constructor() {
    const fire = () => {
      this.#changed.fire();
    };
    this.#subscriptions = [
      vscode.window.onDidChangeActiveTextEditor(fire),
      vscode.window.onDidChangeTextEditorSelection(fire),
    ];
  }

  /** What the view shows above its input. */
  chips(): Chip[] {
    const chips: Chip[] = this.#attached.map(({ id, attachment }) => ({
      id,
      label: attachmentLabel(attachment),
      isSelection: false,
      isOn: true,
    }));
    const selection = selectionAttachment();
    if (selection !== undefined && automaticAttachment() === "selection") {
      const label = attachmentLabel(selection);
      chips.unshift({ id: SELECTION_ID, label, isSelection: true, isOn: this.#isSelectionOn });
    }
    return chips;
  }

  /** What goes along with a prompt sent now; what was attached by hand goes along once. */
  take(): Attachment[] {
    const taken = this.#attached.map(({ attachment }) => attachment);
    const selection = selectionAttachment();
    if (selection !== undefined && this.#isSelectionOn && automaticAttachment() === "selection") {
      taken.unshift(selection);
    }
    this.#attached = [];
    this.#isSelectionOn = true;
    this.#changed.fire();
    return taken;
  }

  /** Keep this for the next prompt. */
  add(attachment: Attachment): void {
    const label = attachmentLabel(attachment);
    this.#attached = this.#attached.filter((one) => attachmentLabel(one.attachment) !== label);
    this.#made += 1;
    this.#attached.push({ id: `a${this.#made}`, attachment });
    this.#changed.fire();
  }

  /** What was taken for a prompt that was not sent; the selection is still where it was. */
  giveBack(attachments: readonly Attachment[]): void {
    for (const attachment of attachments.filter(({ kind }) => kind !== "selection")) {
      this.add(attachment);
    }
  }

  remove(id: string): void {
    this.#attached = this.#attached.filter((one) => one.id !== id);
    this.#changed.fire();
  }

  toggleSelection(): void {
    this.#isSelectionOn = !this.#isSelectionOn;
    this.#changed.fire();
  }

  dispose(): void {
    vscode.Disposable.from(...this.#subscriptions).dispose();
    this.#changed.dispose();
  }
}

/** The selected text of the active editor; undefined when nothing is selected. */
export function selectionAttachment(): Attachment | undefined {
  const editor = sourceEditor();
  if (editor === undefined || editor.selection.isEmpty) {
    return undefined;
  }
  const { document, selection } = editor;
  return {
    kind: "selection",
    path: pathOf(document),
    range: rangeOf(selection),
    text: document.getText(selection),
  };
}

/** The active editor's file, or the text of a document that has no file. */
export function fileAttachment(): Attachment | undefined {
  const document = sourceEditor()?.document;
  if (document === undefined) {
    return undefined;
  }
  return document.uri.scheme === "file"
    ? { kind: "file", path: document.uri.fsPath }
    : { kind: "buffer", path: pathOf(document), text: document.getText() };
}

export function fileAt(uri: vscode.Uri): Attachment {
  return { kind: "file", path: uri.fsPath };
}

/** The active editor, if a prompt may be about it: logs and our own show document are not. */
export function sourceEditor(): vscode.TextEditor | undefined {
  const editor = vscode.window.activeTextEditor;
  const scheme = editor?.document.uri.scheme;
  return scheme === "file" || scheme === "untitled" ? editor : undefined;
}

/** The path of a document's file, or the name of one that has none. */
export function pathOf(document: vscode.TextDocument): string {
  return document.uri.scheme === "file" ? document.uri.fsPath : document.uri.path;
}
