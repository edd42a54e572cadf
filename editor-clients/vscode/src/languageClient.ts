/**
 * VS Code's language client, set up for the server, with two of its habits taken away.
 *
 * It is most of the bundle; it is loaded while the server starts, not when the extension does.
 */

import { createInterface } from "node:readline";

import type * as vscode from "vscode";
import {
  CloseAction,
  ErrorAction,
  LanguageClient,
  type LanguageClientOptions,
} from "vscode-languageclient/node";

import { applyEdit } from "./applyEdit";
import type { ServerProcess } from "./launch";
import type { Progress } from "./progress";

/** What the language client is given, and tells. */
export interface Wiring {
  server: ServerProcess;
  log: vscode.LogOutputChannel;
  initializationOptions: unknown;
  progress: Pick<Progress, "take">;
  onClosed: () => void;
}

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

/** A client that is not started yet. */
export function createLanguageClient(wiring: Wiring): QuietLanguageClient {
  return new QuietLanguageClient("tiro", "Tiro", () => Promise.resolve(wiring.server.child), optionsOf(wiring));
}

function optionsOf({ log, initializationOptions, progress, onClosed }: Wiring): LanguageClientOptions {
  return {
    documentSelector: [{ scheme: "file" }, { scheme: "untitled" }],
    outputChannel: log,
    initializationOptions,
    initializationFailedHandler: () => false,
    errorHandler: {
      error: () => ({ action: ErrorAction.Continue, handled: true }),
      closed: () => {
        onClosed();
        return { action: CloseAction.DoNotRestart, handled: true };
      },
    },
    middleware: {
      handleWorkDoneProgress: (token, params, next) => {
        progress.take(token, params);
        next(token, params);
      },
      workspace: {
        handleApplyEdit: (params, next) => applyEdit(params, next, log),
      },
    },
    stdioOptions: {
      stdout: () => undefined,
      stderr: (input, output) => {
        createInterface({ input, crlfDelay: Infinity }).on("line", (line) => {
          output.info(line);
        });
      },
    },
  };
}
