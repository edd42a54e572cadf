/** Where a block of code belongs in a text, and the text with it; pure. */

import { parseDiff, patched } from "./diff";

/** What may stand before a definition and belongs to it. */
const LEADS = [/^\s*@/, /^\s*(?:#|\/\/|\/\*|\*|--|;)/];

/**
 * The text with the code in it: a diff is applied, a definition that stands there once is replaced,
 * and an empty text becomes the code. Throws, with what to do, where it cannot be told what goes.
 */
export function withCode(text: string, code: string): string {
  const diff = parseDiff(code.replace(/\n+$/, ""));
  if (diff !== undefined) {
    return fitting(patched(text, diff), "This diff does not fit the file: ask for a new one");
  }
  const end = /\r\n|\r|\n/.exec(text)?.[0] ?? "\n";
  const lines = text.split(/\r\n|\r|\n/);
  const fresh = code.replace(/\n+$/, "").split("\n");
  if (text.trim() === "") {
    return [...fresh, ""].join(end);
  }
  const [from, to] = fitting(linesOf(lines, fresh), "It cannot be told where this code belongs: select what it replaces");
  return [...lines.slice(0, from), ...indented(fresh, lines[from] ?? ""), ...lines.slice(to)].join(end);
}

function fitting<T>(value: T | undefined, otherwise: string): T {
  if (value === undefined) {
    throw new Error(otherwise);
  }
  return value;
}

/**
 * The lines that a definition has in the text: its first line, and what is indented below it; above
 * it the decorators where the code brings some, and the comments where it brings some.
 */
function linesOf(lines: readonly string[], fresh: readonly string[]): [number, number] | undefined {
  let begin = 0;
  const kinds = new Set<RegExp>();
  for (let kind = leadOf(fresh[begin]); kind !== undefined; kind = leadOf(fresh[begin])) {
    kinds.add(kind);
    begin = endOf(fresh, begin);
  }
  const first = (fresh[begin] ?? "").trim();
  const found = lines.flatMap((line, index) => (line.trim() === first ? [index] : []));
  const [from] = found;
  if (first === "" || from === undefined || found.length > 1 || endOf(fresh, begin) < fresh.length) {
    return undefined;
  }
  const to = endOf(lines, from);
  return to - from > 1 ? [above(lines, from, kinds), to] : undefined;
}

/** The first of the lines before a definition that are of these kinds, with nothing between. */
function above(lines: readonly string[], from: number, kinds: ReadonlySet<RegExp>): number {
  const depth = indentOf(lines[from] ?? "");
  let begin = from;
  for (let index = from - 1; (lines[index] ?? "").trim() !== ""; index -= 1) {
    const kind = indentOf(lines[index] ?? "") === depth ? leadOf(lines[index]) : undefined;
    if (kind !== undefined && kinds.has(kind) && endOf(lines, index) === begin) {
      begin = index;
    }
  }
  return begin;
}

function leadOf(line = ""): RegExp | undefined {
  return LEADS.find((lead) => lead.test(line));
}

/** The line after the definition that begins here; its closing bracket is still of it. */
function endOf(lines: readonly string[], from: number): number {
  const depth = indentOf(lines[from] ?? "").length;
  let end = from + 1;
  for (let index = end; index < lines.length; index += 1) {
    const line = lines[index] ?? "";
    const isDeeper = indentOf(line).length > depth;
    const isClosing = indentOf(line).length === depth && /^\s*(?:[)\]}]|end\b)/.test(line);
    if (isDeeper || isClosing) {
      end = index + 1;
    }
    if (isClosing || !(isDeeper || line.trim() === "")) {
      break;
    }
  }
  return end;
}

/** The code as deep as the line that it replaces. */
function indented(fresh: readonly string[], line: string): string[] {
  const [is, wanted] = [indentOf(fresh[0] ?? ""), indentOf(line)];
  return fresh.map((one) => (one.startsWith(is) && one.trim() !== "" ? wanted + one.slice(is.length) : one));
}

function indentOf(line: string): string {
  return /^\s*/.exec(line)?.[0] ?? "";
}
