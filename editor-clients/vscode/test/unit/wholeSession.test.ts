import { afterEach, expect, test, vi } from "vitest";

import { deleteSession } from "../../src/wholeSession";
import { commands, window } from "./vscode";

afterEach(() => {
  vi.restoreAllMocks();
});

test.each([
  ["the current session makes it the current one again", "a", ["tiro.showDeletedSessions a", "tiro.loadSession /s/a-2.json"]],
  ["another session leaves the current one", "b", ["tiro.showDeletedSessions b"]],
])("Undo of deleting %s", async (_, id, expected) => {
  const ran: string[] = [];
  vi.spyOn(window, "showInformationMessage").mockResolvedValue("Undo");
  vi.spyOn(commands, "executeCommand").mockImplementation((command: string, given?: unknown) => {
    ran.push(`${command} ${String(given)}`);
    return Promise.resolve({ id, path: `/s/${id}-2.json` } as never);
  });
  const session = { id: "a" as string | null, refresh: () => { session.id = null; }, readDefaults: () => undefined };
  const parts = { client: { request: () => Promise.resolve({}) }, session, tree: { refresh: () => undefined } };
  await deleteSession(parts as never, { id, title: null });
  await new Promise(setImmediate); // all that was resolved has gone on
  expect(ran).toEqual(expected);
});
