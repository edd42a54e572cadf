/** Show Session: the server's exact text in a read-only document. */

import * as vscode from "vscode";

const SCHEME = "tiro";

export class SessionDocuments implements vscode.TextDocumentContentProvider, vscode.Disposable {
  readonly #changed = new vscode.EventEmitter<vscode.Uri>();
  readonly onDidChange = this.#changed.event;
  readonly #texts = new Map<string, string>();
  readonly #registration = vscode.workspace.registerTextDocumentContentProvider(SCHEME, this);

  provideTextDocumentContent(uri: vscode.Uri): string {
    return this.#texts.get(uri.toString()) ?? "";
  }

  /** Open the text of a session, or bring an open one up to date. */
  async show(id: string | null, text: string): Promise<void> {
    const uri = vscode.Uri.from({ scheme: SCHEME, path: `/${id ?? "session"}.txt` });
    this.#texts.set(uri.toString(), text);
    this.#changed.fire(uri);
    const document = await vscode.workspace.openTextDocument(uri);
    await vscode.window.showTextDocument(document, { preview: false });
  }

  dispose(): void {
    this.#registration.dispose();
    this.#changed.dispose();
  }
}
