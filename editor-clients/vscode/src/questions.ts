/**
 * The questions that wait for the user, so that none is lost when its message goes away.
 *
 * VS Code puts a message away after a while, or when others come; the question still waits. Each is
 * shown again on demand, and a moment after the window gets the focus back.
 */

import * as vscode from "vscode";

/** A click on the message may be what brings the focus: it must still find its button. */
const AFTER_FOCUS_MS = 1_000;

/** What waits in this window, oldest first. */
export class Questions implements vscode.Disposable {
  readonly #waiting = new Set<() => void>();
  readonly #changed = new vscode.EventEmitter<number>();
  readonly #focus: vscode.Disposable;
  readonly onCount = this.#changed.event;

  constructor() {
    this.#focus = vscode.window.onDidChangeWindowState(({ focused }) => {
      const waiting = [...this.#waiting];
      if (focused && waiting.length > 0) {
        setTimeout(() => {
          waiting.filter((show) => this.#waiting.has(show)).forEach((show) => {
            show();
          });
        }, AFTER_FOCUS_MS);
      }
    });
  }

  get count(): number {
    return this.#waiting.size;
  }

  /** Show a question, and count it until it is settled. */
  async ask<T>(show: () => void, answer: Promise<T>): Promise<T> {
    this.#waiting.add(show);
    this.#changed.fire(this.count);
    show();
    try {
      return await answer;
    } finally {
      this.#waiting.delete(show);
      this.#changed.fire(this.count);
    }
  }

  /** Show the oldest one again; false when none waits. */
  showOldest(): boolean {
    const [oldest] = this.#waiting;
    oldest?.();
    return oldest !== undefined;
  }

  dispose(): void {
    this.#focus.dispose();
    this.#changed.dispose();
  }
}
