/** Waiting for the end of a turn. */

import type { Session } from "./session";

/** Run this now, or as soon as no turn is running. */
export async function whenIdle(
  session: Pick<Session, "isAnswering" | "onStatus">,
  action: () => Promise<void>,
): Promise<void> {
  while (session.isAnswering) {
    await new Promise<void>((resolve) => {
      const listener = session.onStatus(() => {
        listener.dispose();
        resolve();
      });
    });
  }
  await action();
}
