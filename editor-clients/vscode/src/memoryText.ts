/** Memo and summary as one Markdown text that can be edited and read again; pure. */

const MEMO = "## Memo (JSON)";
const SUMMARY = "## Summary";
const END = "<!-- The summary ends here; what follows is not stored. -->";

/** The server's own entry in a memo that is an object. */
const BOOKKEEPING = "last_resize";

interface Memory {
  memo: unknown;
  summary: string;
}

/** What of memo and summary the user changed. */
export interface ChangedMemory {
  memo?: unknown;
  summary?: string;
}

/** Whether two memories say the same; when and why the memo was last written is no part of what it says. */
export function isSameMemory(one: Memory, other: Memory): boolean {
  return one.summary === other.summary && JSON.stringify(said(one.memo)) === JSON.stringify(said(other.memo));
}

/** What is said about them, then the two, then a list. No line of the head begins with `## `. */
export function memoryText(
  head: readonly string[],
  { memo, summary }: Memory,
  list: readonly string[] = [],
): string {
  const json = JSON.stringify(memo ?? {}, null, 2);
  const both = [MEMO, "", "```json", json, "```", "", SUMMARY, "", summary, "", END];
  return [...head, "", ...both, "", ...list].join("\n");
}

/**
 * What of an edited text differs from the one before, as values.
 *
 * A memo is JSON of any form; what was not edited is not sent back, so it keeps its exact numbers.
 * Throws where a heading is gone or the memo is no JSON.
 */
export function changedMemory(before: string, after: string): ChangedMemory {
  const [old, edited] = [parts(before), parts(after)];
  return {
    ...(edited.memo === old.memo ? {} : { memo: jsonOf(edited.memo) }),
    ...(edited.summary === old.summary ? {} : { summary: edited.summary }),
  };
}

/** JSON holds no line breaks in its texts, so the first summary heading is the right one. */
function parts(text: string): { memo: string; summary: string } {
  const lines = text.split(/\r?\n/);
  const memo = lines.indexOf(MEMO);
  const summary = lines.indexOf(SUMMARY, memo + 1);
  const end = lines.lastIndexOf(END);
  const missing = [[MEMO, memo], [SUMMARY, summary], [END, end]].find(([, place]) => place === -1);
  if (missing !== undefined) {
    throw new Error(`The line “${missing[0] ?? ""}” is missing: put it back, or drop this`);
  }
  const inner = lines.slice(memo + 1, summary).filter((line) => !line.startsWith("```"));
  return { memo: inner.join("\n").trim(), summary: lines.slice(summary + 1, end).join("\n").trim() };
}

/** A memo without what the server notes in it. */
function said(memo: unknown): unknown {
  if (typeof memo !== "object" || memo === null || Array.isArray(memo)) {
    return memo ?? {};
  }
  return Object.fromEntries(Object.entries(memo).filter(([key]) => key !== BOOKKEEPING));
}

/** A blank memo is an empty one. */
function jsonOf(text: string): unknown {
  if (text === "") {
    return {};
  }
  try {
    return JSON.parse(text) as unknown;
  } catch (error) {
    throw new Error(`The memo is no JSON: ${String(error)}`, { cause: error });
  }
}
