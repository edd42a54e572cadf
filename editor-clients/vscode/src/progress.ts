/** What the server says it is busy with, in words. */

import * as vscode from "vscode";
import type { HandleWorkDoneProgressSignature, ProgressToken } from "vscode-languageclient/node";

type WorkDoneProgress = Parameters<HandleWorkDoneProgressSignature>[1];

export class Progress implements vscode.Disposable {
  readonly #told = new vscode.EventEmitter<string>();
  /** "" when it is over. */
  readonly onText = this.#told.event;
  readonly #titles = new Map<ProgressToken, string>();

  take(token: ProgressToken, params: WorkDoneProgress): void {
    this.#told.fire(this.#textOf(token, params));
  }

  dispose(): void {
    this.#told.dispose();
  }

  #textOf(token: ProgressToken, params: WorkDoneProgress): string {
    if (params.kind === "end") {
      this.#titles.delete(token);
      return "";
    }
    if (params.kind === "begin" && params.title !== "Tiro") {
      this.#titles.set(token, params.title);
    }
    const percentage = params.percentage === undefined ? undefined : `${params.percentage} %`;
    return [this.#titles.get(token), params.message, percentage].filter(Boolean).join(" · ");
  }
}
