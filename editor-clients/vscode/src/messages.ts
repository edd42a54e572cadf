/** The content of messages: the user's data, in the spelling of the session files. */

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
