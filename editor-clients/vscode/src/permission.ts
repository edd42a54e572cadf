/**
 * The server's question whether a tool may run.
 *
 * It is always answered: by the user, or with a rejection when the question is dismissed, is
 * withdrawn, or the turn is over. Until then it is among the questions of the window that wait. What
 * does not fit into it is shown in an editor on demand.
 */

import * as vscode from "vscode";

import { parseDiff } from "./diff";
import { messageOf } from "./failure";
import type { Preview } from "./preview";
import type { PermissionParams, PermissionResult, TurnEvent } from "./protocol";
import type { Questions } from "./questions";

const MAX_PREVIEW_CHARACTERS = 400;
/** What a message does not show as it stands: lines, invisible characters, links. */
const UNSHOWABLE = /[\p{C}\p{Zl}\p{Zp}]|\]\(/u;

const ANSWERS: readonly (readonly [string, PermissionResult["decision"]])[] = [
  ["Allow Once", "once"],
  ["Allow for This Session", "always"],
  ["Reject", "reject"],
];

/** Ask the user; resolves with `reject` as soon as the question has become pointless. */
export async function askPermission(
  params: PermissionParams,
  token: vscode.CancellationToken,
  onTurnEvent: vscode.Event<TurnEvent>,
  preview: Pick<Preview, "show" | "close">,
  questions: Pick<Questions, "ask">,
): Promise<PermissionResult> {
  const listeners: vscode.Disposable[] = [];
  const withdrawn = new Promise<undefined>((resolve) => {
    const withdraw = () => {
      resolve(undefined);
    };
    listeners.push(token.onCancellationRequested(withdraw));
    listeners.push(
      onTurnEvent((event) => {
        if (event.type === "finished" && event.turnId === params.turnId) {
          withdraw();
        }
      }),
    );
  });
  try {
    const { show, chosen } = message(params, preview);
    const label = await questions.ask(show, Promise.race([chosen, withdrawn]));
    return { decision: ANSWERS.find(([name]) => name === label)?.[1] ?? "reject" };
  } finally {
    vscode.Disposable.from(...listeners).dispose();
    void preview.close();
  }
}

/**
 * How the question is shown, as often as need be, and the label that the user chooses.
 *
 * VS Code closes a message when the same one is shown again: only the newest can be dismissed.
 */
function message(
  params: PermissionParams,
  preview: Pick<Preview, "show">,
): { show: () => void; chosen: Promise<string | undefined> } {
  const { text, more } = question(params);
  const [once = "", always = "", reject = ""] = ANSWERS.map(([label]) => label);
  const labels = [once, always, ...(more === undefined ? [] : [more]), reject];
  let choose: (label: string | undefined) => void = () => undefined;
  let shown = 0;
  const show = async (): Promise<void> => {
    shown += 1;
    const mine = shown;
    const label = await vscode.window.showWarningMessage(text, ...labels);
    if (label !== undefined && label === more) {
      await preview.show(params).catch((error: unknown) => {
        void vscode.window.showErrorMessage(`Tiro: ${messageOf(error)}`);
      });
      await show();
    } else if (label !== undefined || mine === shown) {
      choose(label);
    }
  };
  const chosen = new Promise<string | undefined>((resolve) => {
    choose = resolve;
  });
  return { show: () => void show(), chosen };
}

/** The question in words, and the button for what they cannot show: the diff, or the whole. */
export function question(params: PermissionParams): { text: string; more?: string } {
  const { agent, effect, toolUse, preview, always } = params;
  const asks = `Tiro (${agent ?? "no agent"}) wants to run ${toolUse.name} [${effect}]:`;
  const diff = parseDiff(preview ?? "");
  if (diff !== undefined) {
    const what = `${changeOf(diff.lines)} in ${asShown(diff.name).text}`;
    return { text: [asks, what, asShown(diff.head).text].join(" ").trim() + lasting(always), more: "Show Diff" };
  }
  const { text, isWhole } = asShown(preview ?? JSON.stringify(toolUse.input));
  return { text: `${asks} ${text}${lasting(always)}`, ...(isWhole ? {} : { more: "Show All" }) };
}

/** What the answer for the session would allow from then on. */
function lasting(rules: readonly string[]): string {
  const what = rules.length > 0 ? rules.map((rule) => asShown(rule).text).join("; ") : "nothing; you are asked again";
  return ` — “${ANSWERS[1]?.[0] ?? ""}” adds ${what}`;
}

function changeOf(lines: readonly string[]): string {
  const [added, removed] = ["+", "-"].map((sign) => lines.filter((line) => line.startsWith(sign)).length);
  return `+${added} −${removed} lines`;
}

/** The beginning of a text that a message shows exactly; several spaces would become one. */
function asShown(text: string): { text: string; isWhole: boolean } {
  const found = text.search(UNSHOWABLE);
  const end = Math.min(found === -1 ? text.length : found, MAX_PREVIEW_CHARACTERS);
  const shown = text.slice(0, end).replaceAll(/ {2,}/g, (spaces) => "\u00A0".repeat(spaces.length));
  return end === text.length ? { text: shown, isWhole: true } : { text: `${shown}…`, isWhole: false };
}
