/** What VS Code shows as wrong, for the server's question. */

import * as vscode from "vscode";

import type { Diagnostic, DiagnosticsParams, DiagnosticsResult } from "./protocol";
import { rangeOf } from "./range";

const SEVERITIES: Record<vscode.DiagnosticSeverity, Diagnostic["severity"]> = {
  [vscode.DiagnosticSeverity.Error]: "error",
  [vscode.DiagnosticSeverity.Warning]: "warning",
  [vscode.DiagnosticSeverity.Information]: "information",
  [vscode.DiagnosticSeverity.Hint]: "hint",
};

/** The problems of one file, or of every file that VS Code knows of. */
export function shownDiagnostics({ path }: DiagnosticsParams): DiagnosticsResult {
  const all =
    path === undefined
      ? vscode.languages.getDiagnostics()
      : [asked(vscode.Uri.file(path))];
  return {
    diagnostics: all
      .filter(([uri]) => uri.scheme === "file")
      .flatMap(([uri, found]) => found.map((one) => toWire(uri, one))),
  };
}

function asked(uri: vscode.Uri): [vscode.Uri, readonly vscode.Diagnostic[]] {
  return [uri, vscode.languages.getDiagnostics(uri)];
}

function toWire(uri: vscode.Uri, one: vscode.Diagnostic): Diagnostic {
  const code = typeof one.code === "object" ? one.code.value : one.code;
  return {
    path: uri.fsPath,
    range: rangeOf(one.range),
    severity: SEVERITIES[one.severity],
    ...(one.source === undefined ? {} : { source: one.source }),
    ...(code === undefined ? {} : { code }),
    message: one.message,
  };
}
