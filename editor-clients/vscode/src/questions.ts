/**
 * The questions that wait for the user, and where each can be answered.
 *
 * A view that can be seen shows the oldest one and no message is needed; else each has a message.
 * VS Code puts a message away after a while, or when others come; the question still waits. Each is
 * shown again on demand, and a moment after the window gets the focus back.
 */

import * as vscode from "vscode";

import type { PermissionResult } from "./protocol";
import type { QuestionItem } from "./viewMessages";

/** A click on the message may be what brings the focus: it must still find its button. */
const AFTER_FOCUS_MS = 1_000;
/** Set while a question waits, for the key that leads to it. */
const CONTEXT_KEY = "tiro.isAsked";

/** What waits: how it is shown, and how it is answered. */
export interface Question {
  /** For the view. */
  readonly item: QuestionItem;
  readonly answered: Promise<PermissionResult>;
  /** Whether a message of it may still be seen. */
  readonly hasToast: boolean;
  /** Show it in a message of its own. */
  toast(): void;
  /** Open the whole of what is asked about. */
  showMore(): Promise<void>;
  /** Only the first answer counts. */
  answer(result: PermissionResult): void;
}

/** What waits in this window, oldest first. */
export class Questions implements vscode.Disposable {
  readonly #waiting = new Set<Question>();
  readonly #changed = new vscode.EventEmitter<void>();
  readonly #wanted = new vscode.EventEmitter<void>();
  readonly #focus: vscode.Disposable;
  readonly onChanged = this.#changed.event;
  /** The user wants to get to the question that the view shows. */
  readonly onWanted = this.#wanted.event;
  #isInView = false;
  #afterFocus: NodeJS.Timeout | undefined;

  constructor() {
    this.#focus = vscode.window.onDidChangeWindowState(({ focused }) => {
      const waiting = [...this.#waiting];
      if (focused && waiting.length > 0) {
        clearTimeout(this.#afterFocus);
        this.#afterFocus = setTimeout(() => {
          this.#toast(waiting.filter((question) => this.#waiting.has(question)));
        }, AFTER_FOCUS_MS);
      }
    });
  }

  get count(): number {
    return this.#waiting.size;
  }

  /** Whether the view can be seen. */
  get isInView(): boolean {
    return this.#isInView;
  }

  get oldest(): Question | undefined {
    const [oldest] = this.#waiting;
    return oldest;
  }

  find(id: string): Question | undefined {
    return [...this.#waiting].find(({ item }) => item.id === id);
  }

  /** The view has come or gone: what waits moves to where it can be seen. */
  setInView(isInView: boolean): void {
    if (this.#isInView === isInView) {
      return;
    }
    this.#isInView = isInView;
    if (isInView && this.#hasToast()) {
      this.#hideToasts();
    }
    this.#toast(this.#waiting);
  }

  /** Show a question, and count it until it is settled. */
  async ask(question: Question): Promise<PermissionResult> {
    this.#waiting.add(question);
    this.#fire();
    this.#toast([question]);
    try {
      return await question.answered;
    } finally {
      this.#waiting.delete(question);
      this.#fire();
      if (question.hasToast) {
        this.#hideToasts();
        this.#toast(this.#waiting);
      }
    }
  }

  /** Lead the user to the oldest one; false when none waits. */
  showOldest(): boolean {
    const { oldest } = this;
    if (this.#isInView && oldest !== undefined) {
      this.#wanted.fire();
    } else {
      oldest?.toast();
    }
    return oldest !== undefined;
  }

  dispose(): void {
    clearTimeout(this.#afterFocus);
    vscode.Disposable.from(this.#focus, this.#changed, this.#wanted).dispose();
  }

  #toast(questions: Iterable<Question>): void {
    if (!this.#isInView) {
      for (const question of questions) {
        question.toast();
      }
    }
  }

  #hasToast(): boolean {
    return [...this.#waiting].some(({ hasToast }) => hasToast);
  }

  /** A single message cannot be taken back; those of others stay in VS Code's list. */
  #hideToasts(): void {
    void vscode.commands.executeCommand("notifications.hideToasts");
  }

  #fire(): void {
    this.#changed.fire();
    void vscode.commands.executeCommand("setContext", CONTEXT_KEY, this.count > 0);
  }
}
