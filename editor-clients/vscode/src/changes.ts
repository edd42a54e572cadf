/** A look at what a tool use has changed in a file, after it was done. */

import { basename } from "node:path";

import type { Parts } from "./commands";
import { type Diff, parseDiff, patched, reversed } from "./diff";
import { blocksOf, messagesOf } from "./messages";
import { currentText, fileOf, pathOf, showDiff } from "./preview";
import * as protocol from "./protocol";
import { replacedBy } from "./replaced";
import type { Change } from "./toolUses";
import { visibleLines } from "./visible";

/** Show the change of an item, else the newest one: as it was asked about, or what the stored tool use says it replaced. */
export async function showChange(parts: Parts, given?: unknown): Promise<void> {
  const { conversation } = parts.session;
  const newest = conversation.items.findLast((item) => item.kind === "tool" && item.diff !== "");
  const id = typeof given === "string" ? given : newest?.id;
  if (id === undefined) {
    throw new Error("No change of a file is shown in the conversation");
  }
  const live = conversation.changeOf(id);
  await (live === undefined ? showStored(parts, id) : showLive(parts, live));
}

/** Whole files where the text is still the one of then, else the diff as it stood. */
async function showLive({ documents }: Parts, change: Change): Promise<void> {
  const diff = parseDiff(change.preview);
  const name = `${change.toolUse.id}/${basename(diff?.name ?? "")}`;
  const texts = diff === undefined ? undefined : await bothTexts(change, diff);
  if (diff === undefined || texts === undefined) {
    await documents.show(`${name}.diff`, visibleLines(change.preview));
  } else {
    await showDiff(documents, { name, title: `${diff.name} (Tiro's change)`, texts });
  }
}

/** From the text of now: forward for a change that was not made, backward for one that was. */
async function bothTexts({ toolUse, isDone }: Change, diff: Diff): Promise<[string, string] | undefined> {
  const now = (await currentText(fileOf(pathOf(toolUse.input) ?? diff.name))) ?? (isDone ? undefined : "");
  const other = now === undefined ? undefined : patched(now, isDone ? reversed(diff) : diff);
  if (now === undefined || other === undefined) {
    return undefined;
  }
  return isDone ? [other, now] : [now, other];
}

async function showStored({ client, documents }: Parts, itemId: string): Promise<void> {
  const [, seq, position] = /^m(\d+)\.(\d+)$/.exec(itemId) ?? [];
  const view = await client.request(protocol.sessionGet, { limit: 1, beforeSeq: Number(seq) + 1 });
  const [message] = messagesOf(view);
  const block = message?.seq === Number(seq) ? blocksOf(message)[Number(position)] : undefined;
  const replaced = replacedBy(block?.input);
  if (replaced.length === 0) {
    throw new Error("This change is not in the session any more");
  }
  const path = pathOf(block?.input) ?? "";
  const side = (index: 0 | 1) => replaced.map((pair) => pair[index]).join("\n…\n");
  const name = `${itemId}/${basename(path)}`;
  await showDiff(documents, { name, title: `${path} (what Tiro replaced there)`, texts: [side(0), side(1)] });
}
