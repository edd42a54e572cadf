/** What the tests in the extension host share: commands, the provider's requests, waiting. */

import * as vscode from "vscode";

import type { TurnResult } from "../../src/protocol";

/** How long to wait for what must come: a busy machine fails no test, what hangs is still seen. */
const PATIENCE_MS = 180_000;

export function run<T>(command: string, ...args: unknown[]): Thenable<T> {
  return vscode.commands.executeCommand<T>(command, ...args);
}

export function ask(prompt: string): Thenable<TurnResult | undefined> {
  return run("tiro.ask", prompt);
}

interface ProviderRequest {
  messages: { role: string; content: unknown }[];
}

async function ofProvider<T>(path: string): Promise<T> {
  const response = await fetch(`${process.env.TIRO_TEST_PROVIDER ?? ""}/${path}`);
  return (await response.json()) as T;
}

/** Ask for a slow answer and wait until a good part of it was sent: it goes on until it is told to finish. */
export async function askSlowly(prompt = "slow"): Promise<{ running: Thenable<TurnResult | undefined> }> {
  const slow = () => ofProvider<{ words: number }[]>("slow");
  const { length } = await slow();
  const running = ask(prompt);
  await until(async () => ((await slow())[length]?.words ?? 0) > 15, "it is answered");
  return { running };
}

/** Have slow answers go on to their ends. */
export async function finish(): Promise<void> {
  await ofProvider("finish");
}

function requests(): Promise<ProviderRequest[]> {
  return ofProvider("requests");
}

/** The system prompt of the newest request. */
export async function systemPrompt(): Promise<unknown> {
  return (await requests()).at(-1)?.messages[0];
}

/** The last messages of all requests, as text. */
export async function lastRequests(): Promise<string[]> {
  return (await requests()).map(({ messages }) => {
    const content = messages.at(-1)?.content;
    return typeof content === "string" ? content : JSON.stringify(content);
  });
}

export async function until(condition: () => boolean | Promise<boolean>, label: string): Promise<void> {
  const end = performance.now() + PATIENCE_MS;
  while (performance.now() < end) {
    if (await condition()) {
      return;
    }
    await pause(25);
  }
  throw new Error(`Waited in vain until ${label}`);
}

function pause(milliseconds: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, milliseconds));
}

/** The text of the active editor. */
export function activeText(): string {
  return vscode.window.activeTextEditor?.document.getText() ?? "";
}

/** Wait until the active editor shows this. */
export async function shows(text: RegExp): Promise<void> {
  await until(() => text.test(activeText()), `the active editor shows ${text}`);
}

/** Replace a text in the active editor, as if it was typed. */
export async function edit(before: string, after: string): Promise<void> {
  await until(() => activeText().includes(before), `the active editor holds ${before}`);
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

/** What an action tells the user, message by message. */
export async function toldBy(action: () => PromiseLike<unknown>): Promise<string[]> {
  const { showInformationMessage } = vscode.window;
  const told: string[] = [];
  vscode.window.showInformationMessage = ((text: string) => {
    told.push(text);
    return Promise.resolve(undefined);
  });
  try {
    await action();
  } finally {
    vscode.window.showInformationMessage = showInformationMessage;
  }
  return told;
}
