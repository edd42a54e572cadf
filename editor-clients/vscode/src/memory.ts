/** The commands about what the model remembers: resize, memo and summary, and how large it is. */

import * as vscode from "vscode";

import type { Parts } from "./commands";
import { contextSizeHint, contextSizePicks, contextSizeText } from "./contextSize";
import { isCancelled } from "./failure";
import { changedMemory, isSameMemory, memoryText } from "./memoryText";
import { messageLine, messagesOf } from "./messages";
import { counted } from "./pick";
import * as protocol from "./protocol";

export const RESIZE_FORM = "resize.md";
const MEMORY_FORM = "memory.md";
/** So many of the messages that would go are shown. */
const MAX_SHOWN = 200;

/** Show what would leave the window; where nothing would, say so: the user may want it all the same. */
export async function previewResize(
  parts: Parts,
  given?: unknown,
): Promise<protocol.PreviewResult | undefined> {
  parts.session.checkIdle();
  if (!(await parts.forms.makeWay(RESIZE_FORM))) {
    return undefined;
  }
  const preview = await askForPreview(parts, given === true);
  if (preview === undefined) {
    return undefined;
  }
  const { draftId } = preview;
  if (draftId !== null && (await changesAnything(parts, preview))) {
    await showPreview(parts, preview, draftId);
    return preview;
  }
  const choice = await tellNothing(preview, given === undefined && draftId === null);
  return choice === undefined ? preview : previewResize(parts, true);
}

/** Apply the preview that is open, with what the user edited in it. */
export async function applyResize({ forms }: Parts): Promise<void> {
  await forms.apply(RESIZE_FORM);
}

/** Window, memo and summary of before the last resize or compaction. */
export async function undoResize({ client, session }: Parts): Promise<protocol.SessionView> {
  const result = await client.request(protocol.sessionUndoResize, {});
  await session.refresh();
  session.tell("info", "The window, memo and summary are those of before the last resize.");
  return result;
}

/** Fold the window into the summary, which a model writes. */
export async function compactSession(parts: Parts): Promise<protocol.ResizeResult | undefined> {
  parts.session.checkIdle();
  const { client } = parts;
  const result = await working("Compacting the session", (token) =>
    client.request(protocol.sessionCompact, {}, token),
  );
  if (result !== undefined) {
    await tellResize(parts, result);
  }
  return result;
}

/** Show memo and summary, to be edited and stored. */
export async function editMemory(parts: Parts): Promise<void> {
  const { client, forms } = parts;
  if (!(await forms.makeWay(MEMORY_FORM))) {
    return;
  }
  const before = textOf(await client.request(protocol.memoGet, {}));
  await forms.open(MEMORY_FORM, { text: before, apply: (text) => storeMemory(parts, before, text) });
}

/** The tokens of the next request and what they are spent on, with what can be done about it. */
export async function contextSize({ client }: Parts): Promise<protocol.ContextSize> {
  const result = await client.request(protocol.sessionContextSize, {});
  const shown = vscode.window.showQuickPick(contextSizePicks(result), {
    title: contextSizeText(result),
    placeHolder: contextSizeHint(result),
  });
  void shown.then((pick) => {
    if (pick !== undefined && pick.value !== "") {
      void vscode.commands.executeCommand(pick.value);
    }
  });
  return result;
}

function askForPreview({ client }: Parts, force: boolean) {
  return working("Looking what a resize would do", (token) =>
    client.request(protocol.sessionPreviewResize, force ? { force } : {}, token),
  );
}

/** Whether a message would go, or memo or summary become another. */
async function changesAnything({ client }: Parts, preview: protocol.PreviewResult): Promise<boolean> {
  return preview.evict.length > 0 || !isSameMemory(preview, await client.request(protocol.memoGet, {}));
}

/** Say that nothing would go; a resize can be forced where the limits alone ask for none. */
function tellNothing({ keep, memoRefused }: protocol.PreviewResult, canForce: boolean): Thenable<string | undefined> {
  const what = keep.length === 0 ? "no message is in it" : `all ${counted(keep.length, "message")} would stay`;
  const refused = memoRefused === null ? "" : `. The memo stays as it was: ${memoRefused}`;
  const told = vscode.window.showInformationMessage(
    `Tiro: Nothing would leave the window: ${what}${refused}`,
    ...(canForce ? ["Resize All the Same"] : []),
  );
  return canForce ? told : Promise.resolve(undefined);
}

async function showPreview(parts: Parts, preview: protocol.PreviewResult, draftId: string): Promise<void> {
  const before = memoryText(headOf(preview), preview, await listOf(parts, preview.evict));
  await parts.forms.open(RESIZE_FORM, {
    text: before,
    apply: async (text) => {
      const params = { draftId, ...changedMemory(before, text) };
      await tellResize(parts, await parts.client.request(protocol.sessionApplyResize, params));
    },
  });
}

function headOf(preview: protocol.PreviewResult): string[] {
  const { evict, keep, memoRefused } = preview;
  const title =
    evict.length === 0
      ? "# No message would leave the window; memo and summary may be written"
      : `# ${counted(evict.length, "message")} of ${evict.length + keep.length} would leave the window`;
  return [
    title,
    "",
    `${sizes(preview)}. What leaves is listed below; it stays in the archive, and *Undo Resize* takes it back.`,
    "Edit memo and summary, then *Apply* (the check mark above). *Drop* changes nothing.",
    ...(memoRefused === null ? [] : ["", `The memo stays as it was: ${memoRefused}`]),
  ];
}

/** What would go, a line each; of very many the newest. */
async function listOf({ client }: Parts, evict: readonly number[]): Promise<string[]> {
  const page = { limit: MAX_SHOWN, beforeSeq: Math.max(0, ...evict) + 1 };
  const messages = messagesOf(await client.request(protocol.sessionGet, page));
  const going = messages.filter(({ seq }) => seq !== undefined && evict.includes(seq));
  const left = evict.length - going.length;
  return [
    ...(left > 0 ? [`- ${counted(left, "older message")}`] : []),
    ...going.map((message) => `- ${messageLine(message)}`),
    "",
  ];
}

/** Store what was edited; what was changed meanwhile is not overwritten without a question. */
async function storeMemory({ client, session }: Parts, before: string, text: string): Promise<void> {
  const changed = changedMemory(before, text);
  const now = textOf(await client.request(protocol.memoGet, {}));
  if (JSON.stringify(changedMemory(before, now)) !== "{}" && !(await mayOverwrite())) {
    throw new Error("Nothing was stored");
  }
  if (Object.keys(changed).length > 0) {
    await client.request(protocol.memoSet, changed);
    await session.readFacts();
  }
}

function mayOverwrite(): Thenable<boolean> {
  const text = "Memo or summary were changed meanwhile";
  return vscode.window
    .showWarningMessage(text, { modal: true }, "Write Over Them")
    .then((choice) => choice !== undefined);
}

function textOf(memory: protocol.MemoResult): string {
  const head = [
    "# What the model remembers",
    "",
    "The memo holds key facts, the summary what left the window; both go with every request.",
    "Edit them, then *Apply* (the check mark above). *Drop* changes nothing.",
    ...(memory.summaryInProgress ? ["", "A model is writing the next summary right now."] : []),
  ];
  return memoryText(head, memory);
}

async function tellResize({ session }: Parts, result: protocol.ResizeResult): Promise<void> {
  await session.readFacts();
  if (result.decision === null) {
    session.tell("info", "There was nothing to take out of the window.");
    return;
  }
  const refused = result.memoRefused === null ? "" : ` The memo stays as it was: ${result.memoRefused}`;
  const undo = result.evicted > 0 ? [{ label: "Undo", command: "tiro.undoResize" } as const] : [];
  session.tell("info", `${counted(result.evicted, "message")} left the window; ${sizes(result)}.${refused}`, undo);
}

function sizes({ tokensBefore, tokensAfter }: { tokensBefore: number; tokensAfter: number }): string {
  return `${tokensBefore.toLocaleString("en")} tokens become about ${tokensAfter.toLocaleString("en")}`;
}

/** What a model has to be asked for, with a way to stop it; undefined when the user did. */
async function working<R>(
  title: string,
  request: (token: vscode.CancellationToken) => Promise<R>,
): Promise<R | undefined> {
  const options = { location: vscode.ProgressLocation.Notification, title: `Tiro: ${title}`, cancellable: true };
  try {
    return await vscode.window.withProgress(options, (_, token) => request(token));
  } catch (error) {
    if (isCancelled(error)) {
      return undefined;
    }
    throw error;
  }
}
