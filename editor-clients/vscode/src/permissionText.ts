/** The server's question in words: for a message, which shows a line of plain text, and for the view. */

import { type Diff, parseDiff } from "./diff";
import type { PermissionParams } from "./protocol";
import { type Decision, DECISIONS, type QuestionItem } from "./viewMessages";

const MAX_MESSAGE_CHARACTERS = 400;
const MAX_VIEW_LINES = 12;
const MAX_VIEW_CHARACTERS = 2_000;
/** What a message does not show as it stands: lines, invisible characters, links. */
const UNSHOWABLE = /[\p{C}\p{Zl}\p{Zp}]|\]\(/u;
/** What cannot be seen in a block of plain text. */
const INVISIBLE = /[^\P{C}\t]|[\p{Zl}\p{Zp}]|[^\P{Default_Ignorable_Code_Point}\u{FE0E}\u{FE0F}]/gu;

/** A message: its question, its buttons, and the one for what it cannot show: the diff, or the whole. */
export interface MessageWords {
  text: string;
  labels: string[];
  more?: string;
}

export function messageWords(params: PermissionParams): MessageWords {
  const { text, more } = messageText(params);
  const { once, always, reject } = DECISIONS;
  const lasting = params.always.length > 0 ? [always] : [];
  const labels = [once, ...lasting, ...(more === undefined ? [] : [more]), reject];
  return { text, labels, ...(more === undefined ? {} : { more }) };
}

/** What a button of the message means; to dismiss it is to reject. */
export function decisionOf(label: string | undefined): Decision {
  return label === DECISIONS.once ? "once" : label === DECISIONS.always ? "always" : "reject";
}

/** The id of the question about a tool use. */
export function questionId(turnId: string, toolUseId: string): string {
  return `${turnId}/${toolUseId}`;
}

/** The question of the view: the first lines of what would be run or changed. */
export function questionItem(params: PermissionParams): QuestionItem {
  const diff = parseDiff(params.preview ?? "");
  return {
    id: questionId(params.turnId, params.toolUse.id),
    title: visible(`${params.agent ?? "No agent"} wants to run ${params.toolUse.name} [${params.effect}]`),
    always: params.always.map(visible),
    ...(diff === undefined ? textFacts(textOf(params)) : diffFacts(diff)),
  };
}

function messageText(params: PermissionParams): { text: string; more?: string } {
  const { toolUse, preview, always } = params;
  const asks = `Tiro (${params.agent ?? "no agent"}) wants to run ${toolUse.name} [${params.effect}]:`;
  const diff = parseDiff(preview ?? "");
  if (diff !== undefined) {
    const what = [changeOf(diff.lines), "in", asShown(diff.name).text, asShown(diff.head).text];
    return { text: `${asks} ${what.join(" ").trim()}${lasting(always)}`, more: "Show Diff" };
  }
  const { text, isWhole } = asShown(textOf(params));
  return { text: `${asks} ${text}${lasting(always)}`, ...(isWhole ? {} : { more: "Show All" }) };
}

type Facts = Pick<QuestionItem, "subject" | "lines" | "isWhole" | "isDiff" | "more">;

function diffFacts({ head, name, lines }: Diff): Facts {
  const subject = visible(`${changeOf(lines)} in ${name} ${head}`.trim());
  return { subject, ...beginning(lines.join("\n")), isDiff: true, more: "Show Diff" };
}

function textFacts(text: string): Facts {
  const shown = beginning(text);
  return { subject: "", ...shown, isDiff: false, more: shown.isWhole ? "" : "Show All" };
}

function beginning(text: string): { lines: string[]; isWhole: boolean } {
  const cut = text.slice(0, MAX_VIEW_CHARACTERS).split("\n").slice(0, MAX_VIEW_LINES);
  return { lines: cut.map(visible), isWhole: cut.join("\n") === text };
}

function textOf({ preview, toolUse }: PermissionParams): string {
  return preview ?? JSON.stringify(toolUse.input);
}

/** Nothing may hide in a line: what cannot be seen stands there as its picture or by its number. */
function visible(text: string): string {
  return text.replaceAll(INVISIBLE, sign);
}

/** As the server and its terminal write it. */
function sign(hidden: string): string {
  const code = hidden.codePointAt(0) ?? 0;
  if (code < 0x20) return String.fromCodePoint(0x2400 + code);
  return code === 0x7f ? "\u2421" : `⟨U+${code.toString(16).toUpperCase().padStart(4, "0")}⟩`;
}

/** What the answer for the session would allow from then on; where that is nothing it is not offered. */
function lasting(rules: readonly string[]): string {
  const what = rules.map((rule) => asShown(rule).text).join("; ");
  return rules.length > 0 ? ` — “${DECISIONS.always}” adds ${what}` : "";
}

function changeOf(lines: readonly string[]): string {
  const [added, removed] = ["+", "-"].map((sign) => lines.filter((line) => line.startsWith(sign)).length);
  return `+${added} −${removed} lines`;
}

/** The beginning of a text that a message shows exactly; several spaces would become one. */
function asShown(text: string): { text: string; isWhole: boolean } {
  const found = text.search(UNSHOWABLE);
  const end = Math.min(found === -1 ? text.length : found, MAX_MESSAGE_CHARACTERS);
  const shown = text.slice(0, end).replaceAll(/ {2,}/g, (spaces) => "\u00A0".repeat(spaces.length));
  return end === text.length ? { text: shown, isWhole: true } : { text: `${shown}…`, isWhole: false };
}
