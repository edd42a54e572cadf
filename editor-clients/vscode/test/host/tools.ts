/** What the tests in the extension host share: commands, the provider's requests, waiting. */

import * as vscode from "vscode";

import type { TurnResult } from "../../src/protocol";

export function run<T>(command: string, ...args: unknown[]): Thenable<T> {
  return vscode.commands.executeCommand<T>(command, ...args);
}

export function ask(prompt: string): Thenable<TurnResult | undefined> {
  return run("tiro.ask", prompt);
}

interface ProviderRequest {
  messages: { role: string; content: unknown }[];
}

async function requests(): Promise<ProviderRequest[]> {
  const response = await fetch(`${process.env.TIRO_TEST_PROVIDER ?? ""}/requests`);
  return (await response.json()) as ProviderRequest[];
}

/** The last messages of all requests, as text. */
export async function lastRequests(): Promise<string[]> {
  return (await requests()).map(({ messages }) => {
    const content = messages.at(-1)?.content;
    return typeof content === "string" ? content : JSON.stringify(content);
  });
}

export async function until(condition: () => boolean | Promise<boolean>, label: string): Promise<void> {
  for (let attempt = 0; attempt < 200; attempt += 1) {
    if (await condition()) {
      return;
    }
    await pause(50);
  }
  throw new Error(`Waited in vain until ${label}`);
}

export function pause(milliseconds: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, milliseconds));
}

/** The text of the active editor. */
export function activeText(): string {
  return vscode.window.activeTextEditor?.document.getText() ?? "";
}

/** Replace a text in the active editor, as if it was typed. */
export async function edit(before: string, after: string): Promise<void> {
  const editor = vscode.window.activeTextEditor;
  const at = activeText().indexOf(before);
  if (editor === undefined || at === -1) {
    throw new Error(`The active editor does not hold ${before}: ${activeText()}`);
  }
  const { document } = editor;
  const range = new vscode.Range(document.positionAt(at), document.positionAt(at + before.length));
  await editor.edit((builder) => {
    builder.replace(range, after);
  });
}

/** Have every modal question answered with this label, as long as the action lasts. */
export async function answering<T>(label: string | undefined, action: () => PromiseLike<T>): Promise<{ result: T; asked: string[] }> {
  const { showWarningMessage } = vscode.window;
  const asked: string[] = [];
  const answer = (text: string) => {
    asked.push(text);
    return Promise.resolve(label);
  };
  vscode.window.showWarningMessage = answer;
  try {
    return { result: await action(), asked };
  } finally {
    vscode.window.showWarningMessage = showWarningMessage;
  }
}

/** What an action reports as an error. */
export async function errorOf(action: () => PromiseLike<unknown>): Promise<string> {
  const { showErrorMessage } = vscode.window;
  let told = "";
  vscode.window.showErrorMessage = ((text: string) => {
    told = text;
    return Promise.resolve(undefined);
  });
  try {
    await action();
  } finally {
    vscode.window.showErrorMessage = showErrorMessage;
  }
  return told;
}
