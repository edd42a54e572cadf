import { expect, test } from "vitest";

import { askPermission, question } from "../../src/permission";
import type { PermissionParams, TurnEvent } from "../../src/protocol";
import { asked, EventEmitter } from "./vscode";

const PARAMS: PermissionParams = {
  turnId: "t1",
  toolUse: { id: "c1", name: "run_command", input: { command: "make" } },
  agent: "build",
  rule: "bash: ask",
  effect: "execute",
  preview: "make",
};

/** Ask, and get hold of everything that can end the question. */
function ask() {
  const cancel = new EventEmitter<void>();
  const events = new EventEmitter<TurnEvent>();
  const token = { isCancellationRequested: false, onCancellationRequested: cancel.event };
  const result = askPermission(PARAMS, token, events.event as never);
  const shown = asked.at(-1);
  if (shown === undefined) {
    throw new Error("nothing was asked");
  }
  return { cancel, events, result, answer: shown.answer, text: shown.text };
}

test.each([
  ["Allow Once", "once"],
  ["Allow for This Session", "always"],
  ["Reject", "reject"],
  [undefined, "reject"],
])("the answer %s is sent as %s", async (label, decision) => {
  const { answer, result } = ask();
  answer(label);
  expect(await result).toEqual({ decision });
});

test("a question that is withdrawn, or whose turn is over, is answered with a rejection", async () => {
  const withdrawn = ask();
  withdrawn.cancel.fire();
  expect(await withdrawn.result).toEqual({ decision: "reject" });
  const over = ask();
  over.events.fire({ type: "finished", turnId: "another" } as TurnEvent);
  over.events.fire({ type: "finished", turnId: "t1" } as TurnEvent);
  expect(await over.result).toEqual({ decision: "reject" });
  expect([over.cancel.listeners, over.events.listeners]).toEqual([0, 0]);
});

test("the question names agent, tool, effect and what exactly would run", () => {
  expect(question(PARAMS)).toBe("Tiro (build) wants to run run_command [execute]: make");
  const long = question({ ...PARAMS, preview: "x".repeat(5_000) });
  expect(long.length).toBeLessThan(500);
});
