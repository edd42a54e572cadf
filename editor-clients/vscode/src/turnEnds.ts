/** The ends of a session's turns, and whether one runs whose end is still to be told; pure. */

import type { Ending } from "./endings";
import type { Notice } from "./notices";

export class TurnEnds {
  #endings: Ending[] = [];
  /** The number of the newest message that is known to be stored. */
  #newestSeq = 0;
  /** A turn has begun, and nothing has told its end. */
  isRunning = false;

  /** Oldest first. */
  get endings(): readonly Ending[] {
    return this.#endings;
  }

  /** The session was read: its newest message, and what is known of its turns. */
  reset(newestSeq: number, endings: readonly Ending[]): void {
    this.#newestSeq = newestSeq;
    this.#endings = [...endings];
    this.isRunning = false;
  }

  /** A turn begins with this message; those of turns that were taken back are not its own. */
  start(seq: number): void {
    this.isRunning = true;
    this.#newestSeq = seq;
    this.#endings = this.#endings.filter(({ after }) => after < seq);
  }

  stored(seq: number): void {
    this.#newestSeq = seq;
  }

  /** The turn is over; where something was told about that, it is remembered. */
  end(notice?: Notice): void {
    this.isRunning = false;
    if (notice !== undefined) {
      this.#endings.push({ after: this.#newestSeq, ...notice });
    }
  }
}
