/**
 * The commands about single messages: pin, take back what came after, edit, ask again.
 *
 * What is taken back stays in the archive, where no model sees it; what tools did to files stays done.
 */

import * as vscode from "vscode";

import type { Parts } from "./commands";
import { attachmentsOf, editableText, type Message, messagesOf, textIn } from "./messages";
import { counted, messagePicks } from "./pick";
import * as protocol from "./protocol";

const MESSAGE_FORM = "message.md";

/** Keep a message in the window, whatever the limits are. */
export function pinMessage(parts: Parts, given?: unknown) {
  return pin(parts, given, true);
}

export function unpinMessage(parts: Parts, given?: unknown) {
  return pin(parts, given, false);
}

/** Take back all messages after one; a question among them stands in the prompt again. */
export async function rewind(parts: Parts, given?: unknown) {
  const { client, session } = parts;
  session.checkIdle();
  const window = await windowOf(parts);
  const seq = seqOf(given) ?? (await pickMessage(parts, window.slice(0, -1), "Rewind to Message"));
  if (seq === undefined || !(await parts.forms.makeWay(MESSAGE_FORM))) {
    return undefined;
  }
  const gone = takenBack(window, seq);
  if (gone.length === 0) {
    throw new Error("Nothing came after this message");
  }
  if (!(await isSure(gone))) {
    return undefined;
  }
  const result = await client.request(protocol.sessionRewind, { toSeq: seq });
  await session.refresh();
  const [first] = gone;
  if (first?.role === "user") {
    session.giveBack({ prompt: textIn(first), attachments: attachmentsOf(first) });
  }
  return result;
}

/** Change the words of a message; the earlier ones stay in the archive. */
export async function editMessage(parts: Parts, given?: unknown): Promise<void> {
  parts.session.checkIdle();
  const window = await windowOf(parts);
  const seq = seqOf(given) ?? (await pickMessage(parts, window, "Edit Message"));
  if (seq === undefined || !(await parts.forms.makeWay(MESSAGE_FORM))) {
    return;
  }
  const message = window.find((one) => one.seq === seq);
  if (message === undefined) {
    throw new Error(`Message ${seq} is not in the window any more, so it is not edited`);
  }
  await parts.forms.open(MESSAGE_FORM, {
    text: editableText(message),
    apply: (text) => storeMessage(parts, seq, text, attachmentsOf(message)),
  });
}

/** Take back the last answer and ask the last question again. */
export async function retry(parts: Parts) {
  const { client, session } = parts;
  session.checkIdle();
  if (!(await parts.forms.makeWay(MESSAGE_FORM))) {
    return undefined; // what is edited there would have no message any more
  }
  const window = await windowOf(parts);
  const place = window.findLastIndex(({ role }) => role === "user");
  const asked = window[place];
  if (asked === undefined) {
    throw new Error("Nothing was asked yet");
  }
  const prompt = { prompt: editableText(asked), attachments: attachmentsOf(asked) };
  if (window.slice(place).some(({ role }) => role === "tool") && !(await mayAskAgain())) {
    return undefined;
  }
  await client.request(protocol.sessionRewind, { toSeq: window[place - 1]?.seq ?? 0 });
  await session.refresh();
  return session.ask(prompt);
}

async function pin(parts: Parts, given: unknown, pinned: boolean) {
  const { client, session } = parts;
  const seq = seqOf(given) ?? (await pickPin(parts, pinned));
  if (seq === undefined) {
    return undefined;
  }
  const result = await client.request(protocol.sessionPin, { seq, pinned });
  await session.readFacts();
  return result;
}

async function pickPin(parts: Parts, pinned: boolean): Promise<number | undefined> {
  const { pins } = parts.session;
  const window = (await windowOf(parts)).filter(({ seq = -1 }) => pins.includes(seq) !== pinned);
  return pickMessage(parts, window, pinned ? "Pin Message" : "Unpin Message");
}

async function windowOf({ client }: Parts): Promise<Message[]> {
  return messagesOf(await client.request(protocol.sessionGet, {}));
}

/** A seq that is given, or that the view's menu says. */
function seqOf(given: unknown): number | undefined {
  const seq = typeof given === "object" ? (given as { seq?: unknown } | null)?.seq : given;
  return typeof seq === "number" ? seq : undefined;
}

async function pickMessage(
  { session }: Parts,
  messages: readonly Message[],
  title: string,
): Promise<number | undefined> {
  if (messages.length === 0) {
    void vscode.window.showInformationMessage(`Tiro: There is no message for “${title}”`);
    return undefined;
  }
  const pick = await vscode.window.showQuickPick(messagePicks(messages, session.pins), {
    title,
    placeHolder: "The newest come first",
    matchOnDescription: true,
  });
  return pick?.value;
}

/** What a rewind takes back: a tool's use and its results go together. */
function takenBack(window: readonly Message[], seq: number): readonly Message[] {
  const after = window.findIndex((one) => one.seq === seq) + 1;
  if (after === 0) {
    throw new Error(`Message ${seq} is not in the window any more`);
  }
  const isInGroup = window[after]?.role === "tool";
  const group = isInGroup ? window.slice(0, after).findLastIndex(({ role }) => role === "assistant") : -1;
  return window.slice(group === -1 ? after : group);
}

async function isSure(gone: readonly Message[]): Promise<boolean> {
  const tools = gone.some(({ role }) => role === "tool") ? "; what tools did stays done" : "";
  const text = `Take back ${counted(gone.length, "message")}? They go to the archive, where no model sees them${tools}.`;
  return (await vscode.window.showWarningMessage(text, { modal: true }, "Take Back")) !== undefined;
}

async function mayAskAgain(): Promise<boolean> {
  const text = "Tools ran for this answer, and what they did stays";
  return (await vscode.window.showWarningMessage(text, { modal: true }, "Ask Again")) !== undefined;
}

async function storeMessage(
  { client, session }: Parts,
  seq: number,
  text: string,
  attachments: readonly protocol.Attachment[],
): Promise<void> {
  if (text.trim() === "") {
    throw new Error("A message needs a word; “Rewind to Message” takes it back");
  }
  const blocks = attachments.map((one) => ({ type: "attachment", ...one }));
  const content = blocks.length === 0 ? text : [{ type: "text", text }, ...blocks];
  await client.request(protocol.sessionEditMessage, { seq, content });
  await session.refresh();
}
