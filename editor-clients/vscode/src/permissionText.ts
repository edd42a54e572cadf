/** The server's question in words: for a message, which shows a line of plain text, and for the view. */

import { type Diff, parseDiff } from "./diff";
import type { PermissionParams } from "./protocol";
import { lastingSentence, lastingWords } from "./lasting";
import { type Decision, DECISIONS, type QuestionItem } from "./viewMessages";
import { visible } from "./visible";

const MAX_MESSAGE_CHARACTERS = 400;
const MAX_VIEW_LINES = 12;
const MAX_VIEW_CHARACTERS = 2_000;
/** What a message does not show as it stands: lines, tabs, links. */
const UNSHOWABLE = /[\n\t]|\]\(/;

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
    always: lastingWords(params.always),
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

/** What the answer for the session would allow from then on; where that is nothing it is not offered. */
function lasting(rules: readonly string[]): string {
  return rules.length === 0 ? "" : ` — ${lastingSentence(lastingWords(rules).map((words) => asShown(words).text))}`;
}

function changeOf(lines: readonly string[]): string {
  const [added, removed] = ["+", "-"].map((sign) => lines.filter((line) => line.startsWith(sign)).length);
  return `+${added} −${removed} lines`;
}

/** The beginning of a text that a message shows exactly; several spaces would become one. */
function asShown(given: string): { text: string; isWhole: boolean } {
  const text = given.split("\n").map(visible).join("\n");
  const found = text.search(UNSHOWABLE);
  const end = Math.min(found === -1 ? text.length : found, MAX_MESSAGE_CHARACTERS);
  const shown = text.slice(0, end).replaceAll(/ {2,}/g, (spaces) => "\u00A0".repeat(spaces.length));
  return end === text.length ? { text: shown, isWhole: true } : { text: `${shown}…`, isWhole: false };
}
