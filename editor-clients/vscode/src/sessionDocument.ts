/** Read-only documents: the session as text, the next request as JSON, what a tool would do. */

import * as vscode from "vscode";

const SCHEME = "tiro";

export class SessionDocuments implements vscode.TextDocumentContentProvider, vscode.Disposable {
  readonly #changed = new vscode.EventEmitter<vscode.Uri>();
  readonly onDidChange = this.#changed.event;
  readonly #texts = new Map<string, string>();
  readonly #registrations = [
    vscode.workspace.registerTextDocumentContentProvider(SCHEME, this),
    vscode.workspace.onDidCloseTextDocument(({ uri }) => {
      this.#texts.delete(uri.toString());
    }),
  ];

  provideTextDocumentContent(uri: vscode.Uri): string {
    return this.#texts.get(uri.toString()) ?? "";
  }

  /** Keep a text under a name, or bring an open one up to date. */
  put(name: string, text: string): vscode.Uri {
    const uri = vscode.Uri.from({ scheme: SCHEME, path: `/${name}` });
    this.#texts.set(uri.toString(), text);
    this.#changed.fire(uri);
    return uri;
  }

  /** Put it and open it. */
  async show(name: string, text: string): Promise<vscode.Uri> {
    const uri = this.put(name, text);
    const document = await vscode.workspace.openTextDocument(uri);
    await vscode.window.showTextDocument(document, { preview: false });
    return uri;
  }

  dispose(): void {
    vscode.Disposable.from(...this.#registrations).dispose();
    this.#changed.dispose();
  }
}
