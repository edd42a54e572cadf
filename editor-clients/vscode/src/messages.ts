/** The content of messages: the user's data, in the spelling of the session files. */

import type { Attachment } from "./protocol";

const MAX_LINE_CHARACTERS = 90;

/** A piece of a message; `type` says what else is in it. */
export interface Block {
  type: string;
  [key: string]: unknown;
}

/** One role and its content. */
export interface Message {
  role: string;
  content: string | Block | Block[];
  seq?: number;
  metadata?: Record<string, unknown> | null;
}

/** The messages of a view; the schema leaves them open, since they are the user's data. */
export function messagesOf(view: { messages: unknown[] }): Message[] {
  return view.messages as Message[];
}

/** A message's content as a list of blocks, whichever of its three forms it has. */
export function blocksOf({ content }: Message): Block[] {
  if (typeof content === "string") {
    return [{ type: "text", text: content }];
  }
  return Array.isArray(content) ? content : [content];
}

/** What a block says in plain text; one that is no text gives its type in brackets. */
export function plainText(block: Block): string {
  return block.type === "text" ? textOf(block.text) : `[${block.type}]`;
}

/** The words of a message: its text blocks. */
export function textIn(message: Message): string {
  return blocksOf(message)
    .filter(({ type }) => type === "text")
    .map(plainText)
    .join("\n");
}

/** What an editor added to a message, as it was sent. */
export function attachmentsOf(message: Message): Attachment[] {
  return blocksOf(message)
    .filter(({ type }) => type === "attachment")
    .map(({ kind, path, range, text }) => {
      const given = Object.entries({ kind, path, range, text });
      return Object.fromEntries(given.filter(([, value]) => value !== undefined)) as unknown as Attachment;
    });
}

/** The words of a message that holds nothing else but attachments; throws for another one. */
export function editableText(message: Message): string {
  const other = blocksOf(message).find(({ type }) => type !== "text" && type !== "attachment");
  if (other !== undefined) {
    throw new Error(`This message holds a block of type ${other.type}, and only text can be edited here`);
  }
  return textIn(message);
}

/** A message in one line: its number, who speaks, and the beginning of what is said. */
export function messageLine(message: Message): string {
  return `${message.seq ?? "?"} ${message.role}: ${shortText(message)}`;
}

/** The beginning of what a message says or does. */
export function shortText(message: Message): string {
  const text = blocksOf(message)
    .filter(({ type }) => type !== "attachment")
    .map((block) => (block.type === "tool_use" ? textOf(block.name) : spoken(block)))
    .join(" ");
  const line = text.replaceAll(/\s+/g, " ").trim();
  return line.length <= MAX_LINE_CHARACTERS ? line : `${line.slice(0, MAX_LINE_CHARACTERS - 1)}…`;
}

function spoken(block: Block): string {
  return block.type === "tool_result" ? resultText(block.content) : plainText(block);
}

/** A tool result's content as text. */
export function resultText(content: unknown): string {
  return Array.isArray(content) ? (content as Block[]).map(plainText).join("\n") : textOf(content);
}

/** Whether a cancel or a failure cut the message short. */
export function isInterrupted(message: Message): boolean {
  const tiro = message.metadata?.tiro as { interrupted?: boolean } | undefined;
  return tiro?.interrupted === true;
}

/** The value if it is a string, else the empty one. */
export function textOf(value: unknown): string {
  return typeof value === "string" ? value : "";
}
