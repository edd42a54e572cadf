/**
 * How turns ended, kept by the window: the server stores messages, and no reason why one is missing.
 *
 * So what was told at the end of a turn is still there after a reload or another server.
 */

import type * as vscode from "vscode";

import type { NoticeItem } from "./viewMessages";

const KEY = "tiro.endings";
/** So many are kept, of all sessions of a workspace. */
const MAX_ENDINGS = 100;

/** What was told, and the number of the newest message that was stored then. */
export interface Ending extends Pick<NoticeItem, "level" | "text" | "actions"> {
  after: number;
}

interface Kept extends Ending {
  id: string;
}

export class Endings {
  constructor(private readonly memory: Pick<vscode.Memento, "get" | "update">) {}

  /** Those of a session, oldest first. */
  of(id: string | null): Ending[] {
    return this.#all().filter((one) => one.id === id);
  }

  /** Keep these as all that there are of a session; one without an id has no turn yet. */
  keep(id: string | null, endings: readonly Ending[]): void {
    if (id !== null && (endings.length > 0 || this.of(id).length > 0)) {
      const others = this.#all().filter((one) => one.id !== id);
      const all = [...others, ...endings.map(({ after, level, text, actions }) => ({ id, after, level, text, actions }))];
      void this.memory.update(KEY, all.slice(-MAX_ENDINGS));
    }
  }

  #all(): Kept[] {
    return this.memory.get<Kept[]>(KEY) ?? [];
  }
}
