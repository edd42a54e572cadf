/** What the user is told about ends and changes that speak for themselves to nobody. */

import { shortNumber } from "./contextSize";
import { actionsFor } from "./failure";
import { textOf } from "./messages";
import { counted } from "./pick";
import type { FinishedEvent, ResizeEvent, SessionChanged } from "./protocol";
import type { NoticeAction, NoticeItem } from "./viewMessages";

export type Notice = Pick<NoticeItem, "level" | "text" | "actions">;

/** What stands below words that the running answer has not taken. */
export const SAID_WAITS = "Waits for the next step";
export const SAID_TOO_LATE = "The answer ended before it was taken";

const END_TEXTS: Readonly<Partial<Record<FinishedEvent["stopReason"], string>>> = {
  cancelled: "Cancelled. What had arrived is kept.",
  max_tokens: "The answer was cut at the model's output limit.",
  max_steps: "The turn reached its limit of steps. Say “continue” and it goes on where it stopped.",
  refusal: "The model refused to answer.",
};

/** What stands below a prompt that is the last message of what was read. */
export const UNANSWERED = "Unanswered";

/** The word about a turn that no last event has told the end of. */
export const BROKEN_OFF = inform("Interrupted: the server ended in the middle of this answer. What it had stored is kept; what it had not stored of this answer is gone.");

/** The word about a turn's end; undefined where the answer says enough. */
export function endNotice(
  { stopReason, error }: Pick<FinishedEvent, "stopReason" | "error">,
  hasAnswered: boolean,
): Notice | undefined {
  if (error) {
    return { level: "error", text: error.message, actions: actionsFor(textOf(error.data?.kind)) };
  }
  const text = stopReason === "end_turn" && !hasAnswered ? "The model gave an empty answer." : END_TEXTS[stopReason];
  return text === undefined ? undefined : inform(text);
}

/** The word about what left the window by itself, and why its memo stayed; undefined where nothing is to be said. */
export function resizeNotice(
  { evicted, tokensBefore, tokensAfter, memoRefused }: Pick<ResizeEvent, "evicted" | "memoRefused" | "tokensAfter" | "tokensBefore">,
): Notice | undefined {
  const room = `${counted(evicted, "message")} left the window to make room: ${shortNumber(tokensBefore)} → ${shortNumber(tokensAfter)} tokens. The archive keeps them.`;
  const parts = [...(evicted === 0 ? [] : [room]), ...(memoRefused === null ? [] : [memoRefused])];
  const actions: NoticeAction[] = evicted === 0 ? [] : [{ label: "Undo Resize", command: "tiro.undoResize" }];
  return parts.length === 0 ? undefined : { level: "info", text: parts.join(" "), actions };
}

/** The word about a change nobody here asked for; undefined where the numbers say enough. */
export function changeNotice(
  reason: SessionChanged["reason"],
  id: string | null,
  why?: string,
): Notice | undefined {
  switch (reason) {
    case "changedOnDisk":
      return inform("The session was changed by another program; this is its new state.");
    case "expired":
      return inform("The session had expired; this is a new one.");
    case "renamed":
      return inform(`The session is now called ${id ?? ""}.`);
    case "saveResumed":
      return inform("The session is saved again.");
    case "saveFailed":
      return {
        level: "error",
        text: `The session cannot be saved${why === undefined ? "" : `: ${why}`}. It is kept in memory, and the next change tries again.`,
        actions: [{ label: "Doctor", command: "tiro.doctor" }],
      };
    default:
      return undefined;
  }
}

function inform(text: string): Notice {
  return { level: "info", text, actions: [] };
}
