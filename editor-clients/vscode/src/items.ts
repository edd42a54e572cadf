/** Stored messages as items of the transcript; pure. */

import {
  type Block,
  blocksOf,
  isInterrupted,
  type Message,
  plainText,
  resultText,
  textOf,
} from "./messages";
import type { Ending } from "./endings";
import { UNANSWERED } from "./notices";
import { replacedLines } from "./replaced";
import type { Range } from "./protocol";
import type { Item, TextItem, ToolItem, ToolStatus, TranscriptChange, UserItem } from "./viewMessages";
import { visible, visibleLines } from "./visible";

const MAX_OUTPUT_CHARACTERS = 4_096;
const MAX_SUMMARY_CHARACTERS = 120;
/** How the server's word begins about a tool use that the user or a rule did not allow. */
const REJECTED = /^(?:The user said no|Not allowed by the rule .*); nothing was run or changed\./;
/** The fields of a tool's input that name what it is about, best first. */
const SUBJECT_KEYS = ["path", "pattern", "command", "query"];

/**
 * The items of a run of messages, oldest first; tool results join the line of their tool use, and what
 * was told at the end of a turn stands behind it.
 */
export function itemsOf(messages: readonly Message[], endings: readonly Ending[] = []): Item[] {
  const items: Item[] = [];
  const open = new Map<string, ToolItem>();
  const first = messages[0]?.seq ?? Infinity;
  let waiting = endings.filter(({ after }) => after >= first);
  let last = 0;
  const addEnds = () => {
    items.push(...waiting.filter(({ after }) => after <= last).map(endItem));
    waiting = waiting.filter(({ after }) => after > last);
  };
  messages.forEach((message, index) => {
    const base = `m${message.seq ?? `x${index}`}`;
    if (message.role === "user") {
      addEnds();
      items.push(userItem(base, message));
    } else {
      blocksOf(message).forEach((block, position) => {
        addBlock(items, open, block, `${base}.${position}`, message);
      });
    }
    last = message.seq ?? last;
  });
  addEnds();
  return items;
}

/** Say of a prompt that ends the items that nothing came of it; where the end was told, it does not end them. */
export function markUnanswered(items: readonly Item[]): void {
  const last = items.at(-1);
  if (last?.kind === "user") {
    last.mark = UNANSWERED;
  }
}

/** The item that shows the message with this number, or the answer that it belongs to. */
export function placeOf(items: readonly Item[], seq: number): string | undefined {
  return items.findLast((item) => (numberOf(item) ?? Infinity) <= seq)?.id;
}

/** The number of the stored message that an item shows; undefined where that is not known. */
function numberOf(item: Item): number | undefined {
  const [, seq] = /^m(\d+)(?:\.|$)/.exec(item.id) ?? [];
  return "seq" in item ? item.seq : seq === undefined ? undefined : Number(seq);
}

/** A stored item gets its number. */
export function numbered(item: UserItem | TextItem, seq: number): TranscriptChange {
  item.seq = seq;
  return { type: "seq", id: item.id, seq };
}

/** A tool's input in one short line: the value that names its subject, else all of it. */
export function summaryOf(input: unknown): string {
  const fields = (typeof input === "object" ? input : null) as Record<string, unknown> | null;
  const subject = SUBJECT_KEYS.map((key) => textOf(fields?.[key])).find((text) => text !== "");
  return visible(oneLine(subject ?? JSON.stringify(input ?? {}), MAX_SUMMARY_CHARACTERS));
}

/** Text for display, cut at what a folded output may hold. */
export function cutOutput(text: string): string {
  return text.length <= MAX_OUTPUT_CHARACTERS ? text : `${text.slice(0, MAX_OUTPUT_CHARACTERS)}…`;
}

/** `a.py:3-7` for an attachment, in a message or still to be sent. */
export function attachmentLabel(attachment: object): string {
  const { kind, path, range } = attachment as Record<string, unknown>;
  const name = textOf(path).split(/[\\/]/).at(-1) ?? "";
  const what = kind === "diagnostics" ? "problems of " : "";
  return what + (name || textOf(kind) || "attachment") + linesText(range as Partial<Range> | null);
}

/** `:3-7`, counted from 1, or nothing. */
function linesText(range: Partial<Range> | null | undefined): string {
  const [start, end] = [range?.start?.line, range?.end?.line];
  if (typeof start !== "number" || typeof end !== "number") {
    return "";
  }
  return start === end ? `:${start + 1}` : `:${start + 1}-${end + 1}`;
}

function endItem({ after, level, text, actions }: Ending): Item {
  return { kind: "notice", id: `end${after}`, level, text, actions };
}

function userItem(id: string, message: Message): Item {
  const blocks = blocksOf(message);
  const attachments = blocks.filter((block) => block.type === "attachment").map((one) => attachmentLabel(one));
  const shown = blocks.filter((block) => block.type !== "attachment").map(plainText);
  return { kind: "user", id, text: shown.join("\n"), attachments, ...seqOf(message) };
}

function seqOf({ seq }: Message): { seq?: number } {
  return seq === undefined ? {} : { seq };
}

function addBlock(
  items: Item[],
  open: Map<string, ToolItem>,
  block: Block,
  id: string,
  message: Message,
): void {
  switch (block.type) {
    case "thinking":
      items.push({ kind: "thinking", id, text: textOf(block.thinking), isStreaming: false });
      return;
    case "tool_use": {
      const item = toolItem(id, textOf(block.name), block.input, "done");
      open.set(textOf(block.id), item);
      items.push(item);
      return;
    }
    case "tool_result":
      addResult(items, open, block, id);
      return;
    default:
      if (plainText(block).trim() !== "") {
        items.push({
          kind: "text",
          id,
          text: plainText(block),
          isStreaming: false,
          isInterrupted: isInterrupted(message),
          ...seqOf(message),
        });
      }
  }
}

function addResult(items: Item[], open: Map<string, ToolItem>, block: Block, id: string): void {
  const known = open.get(textOf(block.tool_use_id));
  const item = known ?? toolItem(id, "tool result", {}, "done");
  if (known === undefined) {
    items.push(item);
  }
  const text = resultText(block.content);
  item.output = cutOutput(text);
  item.status = block.is_error !== true ? "done" : REJECTED.test(text) ? "rejected" : "failed";
}

function toolItem(id: string, name: string, input: unknown, status: ToolStatus): ToolItem {
  const diff = cutOutput(visibleLines(replacedLines(input)));
  return { kind: "tool", id, name: visible(name), summary: summaryOf(input), status, diff, output: "" };
}

function oneLine(text: string, limit: number): string {
  const line = text.replaceAll(/\s+/g, " ").trim();
  return line.length <= limit ? line : `${line.slice(0, limit - 1)}…`;
}
