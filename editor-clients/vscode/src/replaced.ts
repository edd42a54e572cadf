/** What the input of an edit says that it replaces in a file: all that a stored session knows of the change. */

import { textOf } from "./messages";

/** A text, and what comes in its place. */
export type Replaced = [before: string, after: string];

/** The replacements of a tool use; none where it changes no file. */
export function replacedBy(input: unknown): Replaced[] {
  const given = fields(input);
  const edits = Array.isArray(given.edits) ? given.edits.map(fields) : [given];
  const pairs = edits.filter(({ old_text, new_text }) => typeof old_text === "string" && typeof new_text === "string");
  return "path" in given && typeof given.content === "string"
    ? [["", given.content]]
    : pairs.map(({ old_text, new_text }) => [textOf(old_text), textOf(new_text)]);
}

/** The same as the lines of a diff. */
export function replacedLines(input: unknown): string {
  return replacedBy(input)
    .flatMap(([before, after]) => ["@@", ...signed("-", before), ...signed("+", after)])
    .join("\n");
}

function signed(sign: string, text: string): string[] {
  return text === "" ? [] : text.replace(/\n$/, "").split("\n").map((line) => sign + line);
}

function fields(value: unknown): Record<string, unknown> {
  return typeof value === "object" && value !== null ? (value as Record<string, unknown>) : {};
}
