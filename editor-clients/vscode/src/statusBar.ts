/** The status bar item: agent, model, tokens, state; a click opens the quick menu. */

import * as vscode from "vscode";

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
export function createStatusBarItem(session: Session): vscode.Disposable {
  const item = vscode.window.createStatusBarItem("tiro.status", vscode.StatusBarAlignment.Right, 90);
  item.name = "Tiro";
  item.command = "tiro.menu";
  const paint = (status: ViewStatus) => {
    item.text = statusText(status);
    item.tooltip = tooltip(status);
    item.accessibilityInformation = { label: `Tiro, ${tooltip(status)}` };
    item.backgroundColor =
      status.state === "stopped"
        ? new vscode.ThemeColor("statusBarItem.errorBackground")
        : undefined;
  };
  paint(session.status());
  item.show();
  return vscode.Disposable.from(item, session.onStatus(paint));
}

/** What stands in the bar. */
export function statusText(status: ViewStatus): string {
  const icon = ICONS[status.state];
  if (status.state === "starting" || status.state === "stopped") {
    return `${icon} Tiro: ${STATE_WORDS[status.state]}`;
  }
  const model = status.model.split("/").at(-1) ?? "";
  const parts = [status.agent, model, status.tokens].filter((part) => part !== "");
  return `${icon} Tiro: ${parts.join(" · ") || STATE_WORDS[status.state]}`;
}

function tooltip(status: ViewStatus): string {
  const lines = [
    `State: ${STATE_WORDS[status.state]}`,
    status.agent && `Agent: ${status.agent}`,
    status.model && `Model: ${status.model}`,
    status.tokens && `Next request: ${status.tokens}`,
    status.activity,
  ];
  return lines.filter((line) => line !== "").join("\n");
}
