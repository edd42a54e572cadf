/**
 * The server's question whether a tool may run.
 *
 * It is always answered: by the user, or with a rejection when the question is dismissed, is
 * withdrawn, or the turn is over. Until then it is among the questions of the window that wait. What
 * does not fit into it is shown in an editor on demand.
 */

import * as vscode from "vscode";

import { messageOf } from "./failure";
import { decisionOf, messageWords, questionItem } from "./permissionText";
import type { Preview } from "./preview";
import type { PermissionParams, PermissionResult, TurnEvent } from "./protocol";
import type { Question, Questions } from "./questions";
import type { QuestionItem } from "./viewMessages";

/** Ask the user; resolves with `reject` as soon as the question has become pointless. */
export async function askPermission(
  params: PermissionParams,
  token: vscode.CancellationToken,
  onTurnEvent: vscode.Event<TurnEvent>,
  preview: Pick<Preview, "show" | "close">,
  questions: Pick<Questions, "ask" | "isInView">,
): Promise<PermissionResult> {
  const question = new PermissionQuestion(params, preview, questions);
  const withdraw = () => {
    question.answer({ decision: "reject" });
  };
  const withdrawal = vscode.Disposable.from(
    token.onCancellationRequested(withdraw),
    onTurnEvent((event) => {
      if (event.type === "finished" && event.turnId === params.turnId) {
        withdraw();
      }
    }),
  );
  try {
    return await questions.ask(question);
  } finally {
    withdrawal.dispose();
    void preview.close();
  }
}

class PermissionQuestion implements Question {
  readonly item: QuestionItem;
  readonly answered: Promise<PermissionResult>;
  #resolve: (result: PermissionResult) => void = () => undefined;
  #isAnswered = false;
  /** How many messages were shown, and how many of them are not closed yet. */
  #shown = 0;
  #open = 0;

  constructor(
    private readonly params: PermissionParams,
    private readonly preview: Pick<Preview, "show">,
    private readonly questions: Pick<Questions, "isInView">,
  ) {
    this.item = questionItem(params);
    this.answered = new Promise((resolve) => {
      this.#resolve = resolve;
    });
  }

  get hasToast(): boolean {
    return this.#open > 0;
  }

  answer(result: PermissionResult): void {
    this.#isAnswered = true;
    this.#resolve(result);
  }

  toast(): void {
    void this.#toast();
  }

  async showMore(): Promise<void> {
    try {
      await this.preview.show(this.params);
    } catch (error) {
      void vscode.window.showErrorMessage(`Tiro: ${messageOf(error)}`);
    }
  }

  /** VS Code closes a message when the same one is shown again: only the newest can be dismissed. */
  async #toast(): Promise<void> {
    const { text, labels, more } = messageWords(this.params);
    this.#shown += 1;
    this.#open += 1;
    const mine = this.#shown;
    const label = await vscode.window.showWarningMessage(text, ...labels);
    this.#open -= 1;
    if (label !== undefined && label === more) {
      await this.showMore();
      await this.#toastAgain();
    } else if (label !== undefined || (mine === this.#shown && !this.questions.isInView)) {
      this.answer({ decision: decisionOf(label) });
    }
  }

  async #toastAgain(): Promise<void> {
    if (!this.#isAnswered && !this.questions.isInView) {
      await this.#toast();
    }
  }
}
