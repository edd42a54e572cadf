/** The quick picks: sessions, agents, models, and the menu of the status bar. */

import * as vscode from "vscode";

import { type Message, shortText } from "./messages";
import type { Agent, ModelRow, SearchHit, SessionRow } from "./protocol";

/** A pick that stands for a value. */
export interface PickOf<T> extends vscode.QuickPickItem {
  value: T;
}

const INSTALL = ["$(cloud-download) Install Server", "tiro.installServer"] as const;
const DURING_ANSWER: readonly string[] = ["tiro.steer", "tiro.cancel"];

/** The commands of the status bar's menu, in order. */
const MENU: readonly (readonly [string, string])[] = [
  ["$(comment) Ask", "tiro.ask"],
  ["$(comment-discussion) Steer the Answer", "tiro.steer"],
  ["$(question) Answer Question", "tiro.nextAttention"],
  ["$(debug-stop) Cancel the Answer", "tiro.cancel"],
  ["$(refresh) Ask the Last Question Again", "tiro.retry"],
  ["$(history) Rewind to Message", "tiro.rewind"],
  ["$(discard) Undo Edits", "tiro.undoEdits"],
  ["$(redo) Redo Edits", "tiro.redoEdits"],
  ["$(list-flat) Show Session", "tiro.showSession"],
  ["$(add) New Session", "tiro.newSession"],
  ["$(clear-all) Clear Session", "tiro.clearSession"],
  ["$(save) Save Session", "tiro.saveSession"],
  ["$(edit) Rename Session", "tiro.renameSession"],
  ["$(folder-opened) Load Session", "tiro.loadSession"],
  ["$(search) Search Sessions", "tiro.searchSessions"],
  ["$(export) Export Session", "tiro.exportSession"],
  ["$(cloud-download) Import Session", "tiro.importSession"],
  ["$(person) Select Agent", "tiro.selectAgent"],
  ["$(symbol-misc) Select Model", "tiro.selectModel"],
  ["$(dashboard) Context Size", "tiro.contextSize"],
  ["$(fold) Preview Resize", "tiro.previewResize"],
  ["$(file-zip) Compact Session", "tiro.compactSession"],
  ["$(note) Edit Memo and Summary", "tiro.editMemory"],
  ["$(json) Explain Next Request", "tiro.explainRequest"],
  ["$(heart) Doctor", "tiro.doctor"],
  ["$(debug-restart) Restart Server", "tiro.restartServer"],
  ["$(output) Show Log", "tiro.showLog"],
];

/** The formats that a session can be exported to. */
export const EXPORTS = [
  { name: "markdown", ending: "md", about: "for reading" },
  { name: "json", ending: "json", about: "everything, as in the session's own file" },
  { name: "yaml", ending: "yaml", about: "everything, readable" },
  { name: "jsonl", ending: "jsonl", about: "a message a line" },
  { name: "agently", ending: "json", about: "for Agently" },
  { name: "go-agent", ending: "json", about: "for go-agent, its entries" },
  { name: "magent", ending: "json", about: "for magent" },
  { name: "nanobot", ending: "jsonl", about: "for nanobot" },
] as const;

/** The rows of the menu: what a running answer takes only while one runs, the installation only where it is missing. */
export function menuPicks({ isAnswering, isMissing }: { isAnswering: boolean; isMissing: boolean }): PickOf<string>[] {
  const rows = MENU.filter(([, command]) => isAnswering || !DURING_ANSWER.includes(command));
  return [...(isMissing ? [INSTALL] : []), ...rows].map(([label, value]) => ({ label, value }));
}

/** Saved sessions, newest first as the server sends them; a damaged one says so. */
export function sessionPicks(rows: readonly SessionRow[]): PickOf<SessionRow>[] {
  return rows.map((row) => {
    const isTitled = row.title !== null && row.title !== "";
    const facts = [
      isTitled ? row.id : undefined,
      row.savedAt === null ? undefined : new Date(row.savedAt).toLocaleString(),
      counted(row.messages + row.archived, "message"),
      row.agent ?? undefined,
    ];
    return {
      label: `${row.error === null ? "" : "$(warning) "}${isTitled ? row.title : row.id}`,
      description: facts.filter((fact) => fact !== undefined).join(" · "),
      ...(row.error === null ? {} : { detail: row.error }),
      value: row,
    };
  });
}

/** What was found, in the server's order. */
export function hitPicks(hits: readonly SearchHit[]): PickOf<SearchHit>[] {
  return hits.map((hit) => ({
    label: hit.snippet,
    description: [hit.role, hit.id ?? "not saved yet", ...(hit.takenBack === true ? ["taken back"] : [])].join(" · "),
    value: hit,
  }));
}

/** Messages to choose from, newest first; a pinned one says so. */
export function messagePicks(messages: readonly Message[], pins: readonly number[]): PickOf<number>[] {
  return messages
    .flatMap((message) => (message.seq === undefined ? [] : [{ message, seq: message.seq }]))
    .reverse()
    .map(({ message, seq }) => ({
      label: `${pins.includes(seq) ? "$(pinned) " : ""}${shortText(message) || "(no text)"}`,
      description: `${message.role} · ${seq}`,
      value: seq,
    }));
}

/** The formats to choose from. */
export function exportPicks(): PickOf<string>[] {
  return EXPORTS.map(({ name, about }) => ({ label: name, description: about, value: name }));
}

/** The agents a user may select, the current one marked. */
export function agentPicks(agents: readonly Agent[], current: string): PickOf<Agent>[] {
  return agents.map((agent) => ({
    label: agent.name,
    description: agent.name === current ? "current" : "",
    detail: agent.description,
    value: agent,
  }));
}

/** The models, usable ones first; the others say why they are not. */
export function modelPicks(models: readonly ModelRow[], current: string | null): PickOf<ModelRow>[] {
  const ordered = [...models].sort((one, other) => Number(other.available) - Number(one.available));
  return ordered.map((model) => ({
    label: `${model.available ? "" : "$(circle-slash) "}${model.name}`,
    description: model.name === current ? "current" : windowText(model.contextWindow),
    ...(model.reason === null ? {} : { detail: model.reason }),
    value: model,
  }));
}

/** The time of a day that is today, else the day; the year where it is another. */
export function shortTime(time: Date, now: Date): string {
  if (time.toDateString() === now.toDateString()) {
    return time.toLocaleTimeString(undefined, { timeStyle: "short" });
  }
  const year = time.getFullYear() === now.getFullYear() ? {} : { year: "numeric" as const };
  return time.toLocaleDateString(undefined, { month: "short", day: "numeric", ...year });
}

/** `1 message`, `4 messages`. */
export function counted(count: number, noun: string): string {
  return `${count} ${noun}${count === 1 ? "" : "s"}`;
}

function windowText(contextWindow: number | null): string {
  return contextWindow === null ? "" : `${contextWindow.toLocaleString("en")} tokens`;
}
