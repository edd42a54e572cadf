import { beforeEach, expect, test } from "vitest";

import { shownDiagnostics } from "../../src/diagnostics";
import { problems } from "./vscode";

const RANGE = { start: { line: 2, character: 4 }, end: { line: 2, character: 9 } };

function problem(message: string, severity: number, more = {}) {
  return { message, severity, range: RANGE, source: undefined, code: undefined, ...more };
}

beforeEach(() => {
  const code = { value: "E501", target: {} };
  problems.splice(
    0,
    problems.length,
    [{ scheme: "file", fsPath: "/w/a.py" }, [problem("bad", 0), problem("long", 1, { source: "ruff", code })]],
    [{ scheme: "file", fsPath: "/w/b.py" }, [problem("odd", 3, { code: 7 })]],
    [{ scheme: "untitled", fsPath: "Untitled-1" }, [problem("nowhere", 0)]],
  );
});

const BAD = { path: "/w/a.py", range: RANGE, severity: "error", message: "bad" };
const LONG = { ...BAD, severity: "warning", source: "ruff", code: "E501", message: "long" };
const ODD = { ...BAD, path: "/w/b.py", severity: "hint", code: 7, message: "odd" };

test("all files are told, and nothing that is no file", () => {
  expect(shownDiagnostics({})).toEqual({ diagnostics: [BAD, LONG, ODD] });
});

test("one file may be asked about", () => {
  expect(shownDiagnostics({ path: "/w/b.py" })).toEqual({ diagnostics: [ODD] });
  expect(shownDiagnostics({ path: "/w/c.py" })).toEqual({ diagnostics: [] });
});
