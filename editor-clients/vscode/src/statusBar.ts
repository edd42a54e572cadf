/**
 * The status bar item: agent, model, tokens, state, or the questions that wait for the user.
 *
 * A click opens the quick menu, or the oldest of those questions.
 */

import * as vscode from "vscode";

import { counted } from "./pick";
import type { Questions } from "./questions";
import type { Session } from "./session";
import type { ClientState, ViewStatus } from "./viewMessages";

const ICONS: Readonly<Record<ClientState, string>> = {
  starting: "$(loading~spin)",
  ready: "$(comment)",
  answering: "$(sync~spin)",
  stopped: "$(error)",
};

const STATE_WORDS: Readonly<Record<ClientState, string>> = {
  starting: "starting",
  ready: "ready",
  answering: "answering",
  stopped: "stopped",
};

/** Show the item and keep it true. */
export function createStatusBarItem(session: Session, questions: Questions): vscode.Disposable {
  const item = vscode.window.createStatusBarItem("tiro.status", vscode.StatusBarAlignment.Right, 90);
  item.name = "Tiro";
  const paint = () => {
    const [status, waiting] = [session.status(), questions.count];
    item.text = statusText(status, waiting);
    item.tooltip = tooltip(status, waiting);
    item.accessibilityInformation = { label: `Tiro, ${item.tooltip}` };
    item.command = waiting > 0 ? "tiro.nextAttention" : "tiro.menu";
    const color = waiting > 0 ? "warning" : status.state === "stopped" ? "error" : undefined;
    item.backgroundColor =
      color === undefined ? undefined : new vscode.ThemeColor(`statusBarItem.${color}Background`);
  };
  paint();
  item.show();
  return vscode.Disposable.from(item, session.onStatus(paint), questions.onChanged(paint));
}

/** What stands in the bar; above all that the user is waited for. */
export function statusText(status: Pick<ViewStatus, "state" | "agent" | "model" | "tokens">, waiting = 0): string {
  if (waiting > 0) {
    return `$(question) Tiro: ${counted(waiting, "question")}`;
  }
  const icon = ICONS[status.state];
  if (status.state === "starting" || status.state === "stopped") {
    return `${icon} Tiro: ${STATE_WORDS[status.state]}`;
  }
  const model = status.model.split("/").at(-1) ?? "";
  const parts = [status.agent, model, status.tokens].filter((part) => part !== "");
  return `${icon} Tiro: ${parts.join(" · ") || STATE_WORDS[status.state]}`;
}

function tooltip(status: ViewStatus, waiting: number): string {
  const lines = [
    waiting > 0 ? `${counted(waiting, "question")} waiting for your answer; click to see` : "",
    `State: ${STATE_WORDS[status.state]}`,
    status.agent && `Agent: ${status.agent}`,
    status.model && `Model: ${status.model}`,
    status.tokensSentence,
    status.isRestricted ? "The workspace is not trusted: Tiro only reads" : "",
    status.activity,
  ];
  return lines.filter((line) => line !== "").join("\n");
}
