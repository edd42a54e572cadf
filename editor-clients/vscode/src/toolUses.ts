/** The tool uses of the running turn as items of the transcript; pure. */

import { parseDiff } from "./diff";
import { cutOutput, summaryOf } from "./items";
import type { ToolOutputEvent, ToolResultEvent, ToolUse, ToolUseEvent } from "./protocol";
import type { ToolItem, TranscriptChange } from "./viewMessages";
import { visible, visibleLines } from "./visible";

/** A change of a file, as it was shown before it was made. */
export interface Change {
  toolUse: ToolUse;
  preview: string;
  isDone: boolean;
}

export class ToolUses {
  /** Those of the running turn, by the id of their use. */
  readonly #running = new Map<string, ToolItem>();
  /** By the id of their item; they can be looked at as long as the item is there. */
  readonly #changes = new Map<string, Change>();

  /** A use goes on: its item, and whether it is a new one. */
  use(event: ToolUseEvent, newId: () => string): { item: ToolItem; isNew: boolean } {
    const { toolUse, status, preview, parentToolUseId } = event;
    const known = this.#running.get(toolUse.id);
    const item: ToolItem = known ?? {
      kind: "tool",
      id: newId(),
      // What a sub-agent does stands below the tool use it works for.
      name: visible(parentToolUseId === undefined ? toolUse.name : `↳ ${toolUse.name}`),
      summary: summaryOf(toolUse.input),
      status,
      diff: "",
      output: "",
    };
    item.status = status;
    this.#running.set(toolUse.id, item);
    const diff = parseDiff(preview ?? "");
    if (preview !== undefined && diff !== undefined) {
      const head = diff.head === "" ? [] : [diff.head];
      item.diff = cutOutput(visibleLines([...head, ...diff.lines].join("\n")));
      this.#changes.set(item.id, { toolUse, preview, isDone: false });
    } else if (preview !== undefined) {
      item.output = visibleLines(preview);
    }
    const change = this.#changes.get(item.id);
    if (change !== undefined) {
      change.isDone = status === "done";
    }
    return { item, isNew: known === undefined };
  }

  output({ toolUseId, delta }: ToolOutputEvent): TranscriptChange[] {
    const item = this.#running.get(toolUseId);
    if (item === undefined) {
      return [];
    }
    const before = item.output;
    item.output = cutOutput(before + delta);
    const added = item.output.slice(before.length);
    return added === "" ? [] : [{ type: "append", id: item.id, delta: added }];
  }

  result({ toolUseId, isError, content }: ToolResultEvent): TranscriptChange[] {
    const item = this.#running.get(toolUseId);
    if (item === undefined) {
      return [];
    }
    item.output = cutOutput(content);
    if (item.status === "running" || item.status === "proposed") {
      item.status = isError ? "failed" : "done";
    }
    return [{ type: "put", item: { ...item } }];
  }

  /** The change that an item of this window shows. */
  change(itemId: string): Change | undefined {
    return this.#changes.get(itemId);
  }

  /** The turn is over. */
  endTurn(): void {
    this.#running.clear();
  }

  /** Other items are shown. */
  forget(): void {
    this.#running.clear();
    this.#changes.clear();
  }
}
