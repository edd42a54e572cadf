/**
 * The server's changes of open documents: `workspace/applyEdit`.
 *
 * VS Code makes them, one step of its undo a file, and refuses a version that moved on. A document
 * that had no unsaved text is saved afterwards, so that commands which Tiro runs see the change.
 */

import * as vscode from "vscode";
import {
  type ApplyWorkspaceEditParams,
  type ApplyWorkspaceEditRequest,
  type ApplyWorkspaceEditResult,
  CancellationToken,
  ResponseError,
  type WorkspaceEdit,
} from "vscode-languageserver-protocol";

import { savesEditedFiles } from "./config";
import { messageOf } from "./failure";

const CLOSED = "the document is not open any more";
const REFUSED = "its text was changed meanwhile, or it is read-only";
/** What VS Code shows for bytes that it could not read; saving would write it over them. */
const UNREADABLE = "\uFFFD";

type Answer = ApplyWorkspaceEditResult | ResponseError;

/** Make the change by `apply`, then save what was saved before. */
export async function applyEdit(
  params: ApplyWorkspaceEditParams,
  apply: ApplyWorkspaceEditRequest.HandlerSignature,
  log: Pick<vscode.LogOutputChannel, "warn">,
): Promise<Answer> {
  const documents = urisOf(params.edit).map(openDocument);
  if (documents.includes(undefined)) {
    // VS Code would open the file, whose text is not the one that the change was made for.
    return { applied: false, failureReason: CLOSED };
  }
  const saved = documents.filter((document) => document?.isDirty === false);
  const result = await apply(params, CancellationToken.None);
  if (result instanceof ResponseError || !result.applied) {
    return result instanceof ResponseError ? result : { failureReason: REFUSED, ...result };
  }
  if (savesEditedFiles()) {
    for (const document of saved) {
      await save(document, log);
    }
  }
  return result;
}

function urisOf({ documentChanges, changes }: WorkspaceEdit): string[] {
  return documentChanges === undefined
    ? Object.keys(changes ?? {})
    : documentChanges.map((change) => ("textDocument" in change ? change.textDocument.uri : ""));
}

function openDocument(uri: string): vscode.TextDocument | undefined {
  const wanted = vscode.Uri.parse(uri).toString();
  return vscode.workspace.textDocuments.find((document) => document.uri.toString() === wanted);
}

/** Save it; where that fails it stays changed, and the log says why. */
async function save(
  document: vscode.TextDocument | undefined,
  log: Pick<vscode.LogOutputChannel, "warn">,
): Promise<void> {
  if (document === undefined) {
    return;
  }
  const unsaved = `${document.uri.fsPath} is changed but not saved`;
  if (document.getText().includes(UNREADABLE)) {
    log.warn(`${unsaved}: VS Code could not read all of it in this encoding`);
    return;
  }
  try {
    if (!(await document.save())) {
      log.warn(`${unsaved}: VS Code did not save it`);
    }
  } catch (error) {
    log.warn(`${unsaved}: ${messageOf(error)}`);
  }
}
