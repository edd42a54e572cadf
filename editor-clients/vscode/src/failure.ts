/** Errors in the words of the user: the message, its kind, and what can be done about it. */

import type { NoticeAction } from "./viewMessages";

/** LSP's code for a request that the user stopped. */
const REQUEST_CANCELLED = -32_800;

/** What helps where no server was found. */
export const FIRST_STEPS: NoticeAction[] = [
  { label: "Install Server", command: "tiro.installServer" },
  { label: "Open Settings", command: "tiro.openSettings" },
];

/** The server does not run; the message says how to start it, why there is none, or that it is being started again. */
export class ServerStoppedError extends Error {
  readonly actions: NoticeAction[];

  constructor(missing?: Error, isStartedAgain = false) {
    const text = isStartedAgain
      ? "The Tiro server stopped before it could answer, and is started again: try again"
      : "The Tiro server is not running: restart it with “Tiro: Restart Server”";
    super(missing?.message ?? text);
    const restart: NoticeAction[] = isStartedAgain ? [] : [{ label: "Restart", command: "tiro.restartServer" }];
    this.actions = missing === undefined ? restart : FIRST_STEPS;
  }
}

const ACTIONS_BY_KIND: Readonly<Record<string, NoticeAction[]>> = {
  modelNotConfigured: [
    { label: "Select Model", command: "tiro.selectModel" },
    { label: "Open Settings", command: "tiro.openSettings" },
  ],
  agentNotFound: [{ label: "Select Agent", command: "tiro.selectAgent" }],
  modelFailed: [
    { label: "Select Model", command: "tiro.selectModel" },
    { label: "Show Log", command: "tiro.showLog" },
  ],
};

/** The message of an error. */
export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

/** The protocol's name of an error: `data.kind`. */
export function kindOf(error: unknown): string | undefined {
  const { data } = answered(error);
  return (data as { kind?: string } | undefined)?.kind;
}

/** Whether the user stopped the request. */
export function isCancelled(error: unknown): boolean {
  return answered(error).code === REQUEST_CANCELLED;
}

/** The buttons that help with an error of this kind. */
export function actionsFor(kind: string | undefined): NoticeAction[] {
  return ACTIONS_BY_KIND[kind ?? ""] ?? [];
}

/** The buttons that help with this error. */
export function actionsForError(error: unknown): NoticeAction[] {
  return error instanceof ServerStoppedError ? error.actions : actionsFor(kindOf(error));
}

/** What JSON-RPC's error holds, where it is one: its class is of the language client, which is loaded late. */
function answered(error: unknown): { code?: unknown; data?: unknown } {
  return error instanceof Error ? (error as Error & { code?: unknown; data?: unknown }) : {};
}
