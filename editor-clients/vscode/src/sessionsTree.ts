/** The saved sessions as a tree view, newest first; the current one is marked. */

import * as vscode from "vscode";

import type { Client } from "./client";
import { messageOf } from "./failure";
import { counted, shortTime } from "./pick";
import * as protocol from "./protocol";
import type { Session } from "./session";

/** Set once the list was read, and is empty: until then nobody knows. */
const NONE_SAVED = "tiro.noneSaved";
/** Several changes that come together are read once. */
const CALM_MS = 200;

export class SessionsTree implements vscode.TreeDataProvider<protocol.SessionRow>, vscode.Disposable {
  static readonly id = "tiro.sessions";

  readonly #changed = new vscode.EventEmitter<void>();
  readonly onDidChangeTreeData = this.#changed.event;
  readonly #view: vscode.TreeView<protocol.SessionRow>;
  readonly #subscriptions: vscode.Disposable[];
  #timer: NodeJS.Timeout | undefined;
  /** What the status said that a row shows too. */
  #shown = "";

  constructor(
    private readonly client: Client,
    private readonly session: Session,
    private readonly log: Pick<vscode.LogOutputChannel, "warn">,
  ) {
    this.#view = vscode.window.createTreeView(SessionsTree.id, { treeDataProvider: this });
    this.#subscriptions = [
      this.#view,
      client.onSessionChanged(() => {
        this.refresh();
      }),
      session.onStatus(({ state }) => {
        this.#statusChanged(JSON.stringify([state, session.id, session.title]));
      }),
    ];
  }

  /** Read the list again soon. */
  refresh(): void {
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => {
      this.#changed.fire();
    }, CALM_MS);
  }

  getTreeItem(row: protocol.SessionRow): vscode.TreeItem {
    return sessionItem(row, this.session.id);
  }

  async getChildren(parent?: protocol.SessionRow): Promise<protocol.SessionRow[]> {
    if (parent !== undefined || this.client.state !== "ready") {
      return [];
    }
    try {
      const { sessions, total } = await this.client.request(protocol.sessionList, {});
      const older = total - sessions.length;
      void vscode.commands.executeCommand("setContext", NONE_SAVED, sessions.length === 0);
      this.#view.message = older > 0 ? `${counted(older, "older session")}: search finds them` : "";
      return sessions;
    } catch (error) {
      this.log.warn(`The list of sessions: ${messageOf(error)}`);
      return [];
    }
  }

  dispose(): void {
    clearTimeout(this.#timer);
    this.#changed.dispose();
    vscode.Disposable.from(...this.#subscriptions).dispose();
  }

  #statusChanged(now: string): void {
    if (now !== this.#shown) {
      this.#shown = now;
      this.refresh();
    }
  }
}

const ICONS = { current: "comment", saved: "history", damaged: "warning" };

/** A row of the view; a click loads it, unless it is the current one or damaged. */
export function sessionItem(row: protocol.SessionRow, currentId: string | null): vscode.TreeItem {
  const { id, title, path, error, savedAt } = row;
  const item = new vscode.TreeItem(title ?? id);
  const kind = id === currentId ? "current" : error === null ? "saved" : "damaged";
  item.id = path;
  item.description = factsOf(row);
  const saved = savedAt === null ? null : `Saved ${new Date(savedAt).toLocaleString()}`;
  item.tooltip = [id, saved, path, error].filter((line) => line !== null).join("\n");
  item.contextValue = kind;
  item.iconPath = new vscode.ThemeIcon(ICONS[kind]);
  const speaker = kind === "current" ? "Current session" : "Session";
  item.accessibilityInformation = { label: `${speaker} ${title ?? id}, ${item.description}` };
  if (kind === "saved") {
    item.command = { command: "tiro.loadSession", title: "Load Session", arguments: [path] };
  }
  return item;
}

function factsOf({ error, savedAt, messages, agent }: protocol.SessionRow): string {
  const when = savedAt === null ? null : shortTime(new Date(savedAt), new Date());
  return error ?? [when, counted(messages, "message"), agent].filter((fact) => fact !== null).join(" · ");
}
