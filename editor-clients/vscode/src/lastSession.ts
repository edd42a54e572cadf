/** The session this window had last, so that a reload or a new server goes on with it. */

import type * as vscode from "vscode";

import type { Client } from "./client";
import { kindOf } from "./failure";
import * as protocol from "./protocol";

const KEY = "tiro.session";
/** The server of a window that was just reloaded may need a moment to end. */
const IN_USE_ATTEMPTS = 6;
const IN_USE_PAUSE_MS = 500;

/** How a session is found again: where it was loaded from, else its id. */
export interface Place {
  id: string | null;
  path: string | null;
}

export class LastSession {
  constructor(private readonly memory: vscode.Memento) {}

  /** Keep the place; a session without one is new and has nothing to go on with. */
  remember({ id, path }: Place): void {
    const place = id === null && path === null ? undefined : { id, path };
    void this.memory.update(KEY, place);
  }

  /** Load it again; undefined when there is none or it was deleted. */
  async load(client: Client): Promise<protocol.SessionView | undefined> {
    const place = this.memory.get<Place>(KEY);
    if (place === undefined) {
      return undefined;
    }
    const params = place.path === null ? { id: place.id } : { path: place.path };
    for (let attempt = 1; ; attempt += 1) {
      try {
        return await client.requestNow(protocol.sessionLoad, params);
      } catch (error) {
        if (kindOf(error) === "sessionNotFound") {
          return undefined;
        }
        if (kindOf(error) !== "sessionInUse" || attempt === IN_USE_ATTEMPTS) {
          throw error;
        }
        await new Promise((resolve) => setTimeout(resolve, IN_USE_PAUSE_MS));
      }
    }
  }
}
