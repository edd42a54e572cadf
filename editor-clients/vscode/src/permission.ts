/**
 * The server's question whether a tool may run.
 *
 * It is always answered: by the user, or with a rejection when the question is dismissed, is
 * withdrawn, or the turn is over.
 */

import * as vscode from "vscode";

import type { PermissionParams, PermissionResult, TurnEvent } from "./protocol";

const MAX_PREVIEW_CHARACTERS = 400;

const ANSWERS: readonly (readonly [string, PermissionResult["decision"]])[] = [
  ["Allow Once", "once"],
  ["Allow for This Session", "always"],
  ["Reject", "reject"],
];

/** Ask the user; resolves with `reject` as soon as the question has become pointless. */
export async function askPermission(
  params: PermissionParams,
  token: vscode.CancellationToken,
  onTurnEvent: vscode.Event<TurnEvent>,
): Promise<PermissionResult> {
  const listeners: vscode.Disposable[] = [];
  const withdrawn = new Promise<undefined>((resolve) => {
    const withdraw = () => {
      resolve(undefined);
    };
    listeners.push(token.onCancellationRequested(withdraw));
    listeners.push(
      onTurnEvent((event) => {
        if (event.type === "finished" && event.turnId === params.turnId) {
          withdraw();
        }
      }),
    );
  });
  const asked = vscode.window.showWarningMessage(
    question(params),
    ...ANSWERS.map(([label]) => label),
  );
  try {
    const label = await Promise.race([asked, withdrawn]);
    return { decision: ANSWERS.find(([name]) => name === label)?.[1] ?? "reject" };
  } finally {
    for (const listener of listeners) {
      listener.dispose();
    }
  }
}

/** The question in words: who wants to run what, on what, and which rule makes us ask. */
export function question(params: PermissionParams): string {
  const subject = params.preview ?? JSON.stringify(params.toolUse.input);
  const shown =
    subject.length > MAX_PREVIEW_CHARACTERS
      ? `${subject.slice(0, MAX_PREVIEW_CHARACTERS)}…`
      : subject;
  return `Tiro (${params.agent}) wants to run ${params.toolUse.name} [${params.effect}]: ${shown}`;
}
