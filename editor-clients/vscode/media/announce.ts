/** What a screen reader hears while the focus is elsewhere. */

import type { Item } from "../src/viewMessages";
import { byId } from "./dom";
import { toolWords } from "./paint";

const MAX_CHARACTERS = 1_000;

/** Say what has come: a finished answer, a tool use, a notice. */
export function announceItem(item: Item): void {
  if (item.kind === "text" && !item.isStreaming) {
    const cut = item.text.slice(0, MAX_CHARACTERS);
    say(`Tiro: ${cut}${cut.length < item.text.length ? "…" : ""}`);
  } else if (item.kind === "tool") {
    say(toolWords(item));
  } else if (item.kind === "notice" && item.level === "info") {
    say(item.text);
  }
}

/** Said when there is time for it. */
export function say(text: string): void {
  byId("live").textContent = text;
}

/** Said at once; the same again is no news. */
export function warn(text: string): void {
  const urgent = byId("urgent");
  if (urgent.textContent !== text) {
    urgent.textContent = text;
  }
}
