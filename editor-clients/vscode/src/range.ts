/** A range of VS Code as the protocol writes it: its numbers alone. */

import type { Position, Range } from "./protocol";

export function rangeOf({ start, end }: Range): Range {
  return { start: place(start), end: place(end) };
}

function place({ line, character }: Position): Position {
  return { line, character };
}
