/** VS Code's language client, with two of its habits taken away. */

import { LanguageClient } from "vscode-languageclient/node";

/** Reports to the log only, and leaves the commands of the palette to us. */
export class QuietLanguageClient extends LanguageClient {
  override error(message: string, data?: unknown): void {
    super.error(message, data, false);
  }

  override registerFeature(feature: Parameters<LanguageClient["registerFeature"]>[0]): void {
    // The server's commands carry the same ids as ours, which do more: they show their result.
    const { registrationType } = feature as { registrationType?: { method: string } };
    if (registrationType?.method !== "workspace/executeCommand") {
      super.registerFeature(feature);
    }
  }
}
