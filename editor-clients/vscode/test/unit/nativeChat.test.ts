/** What is referred to in VS Code's own Chat, as attachments of a prompt. */

import { expect, test } from "vitest";

import { attachmentOf, promptOf, Telling } from "../../src/nativeChat";
import { Location, Uri } from "./vscode";

function taken(value: unknown) {
  return attachmentOf({ value } as never);
}

test("a file goes along by its path, and is read as the editor holds it", () => {
  expect(taken(Uri.file("/w/a.py"))).toEqual([{ kind: "file", path: "/w/a.py" }]);
});

test("a selection goes along with its range", () => {
  const range = { start: { line: 1, character: 2 }, end: { line: 3, character: 4 } };
  expect(taken(new Location(Uri.file("/w/a.py"), range))).toEqual([{ kind: "selection", path: "/w/a.py", range }]);
});

test("a text goes along as it is, and what cannot be read does not", () => {
  expect(taken("the text")).toEqual([{ kind: "text", text: "the text" }]);
  expect(taken({ images: 1 })).toEqual([]);
  expect(taken(new Uri("git", "/w/a.py"))).toEqual([]);
});

test("a tool use is listed as what becomes of it, and asks only where the user is asked", () => {
  const lines: string[] = [];
  const progress = (line: string) => {
    lines.push(line);
  };
  const told = new Telling({ markdown: () => undefined, progress, button: () => undefined });
  const take = (id: string, name: string, ...statuses: string[]) => {
    for (const status of statuses) {
      told.take({ type: "toolUse", turnId: "t", toolUse: { id, name, input: { path: "a.py" } }, status } as never);
    }
  };
  take("1", "read_file", "proposed", "running", "done");
  take("2", "edit_file", "proposed");
  told.ask("t/2");
  told.ask("t/2"); // another question has come behind it
  told.ask(undefined);
  take("2", "edit_file", "running", "failed");
  take("3", "run_command", "proposed");
  told.ask("t/unknown");
  take("3", "run_command", "rejected");
  expect(lines).toEqual([
    "read_file a.py",
    "edit_file a.py (asks for your permission)",
    "edit_file a.py",
    "edit_file a.py (failed)",
    "run_command a.py (rejected)",
  ]);
});

test("the participant's name written once more is no part of what is asked", () => {
  const asked = (prompt: string, command?: string) => promptOf({ command, prompt });
  expect(asked("@tiro hello @tiro there")).toBe("hello @tiro there");
  expect(asked(" @tiro")).toBe("");
  expect(asked("@tirolean hats")).toBe("@tirolean hats");
  expect(asked("@tiro why?", "fix")).toBe("Fix what is wrong here.\n\nwhy?");
});
