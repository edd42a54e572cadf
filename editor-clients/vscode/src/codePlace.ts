/** Where a block of code belongs in a text, and the text with it; pure. */

import { parseDiff, patched } from "./diff";

/**
 * The text with the code in it: a diff is applied, a definition that stands there once is replaced,
 * and any other code is the whole new text. Undefined for a diff that does not fit.
 */
export function withCode(text: string, code: string): string | undefined {
  const diff = parseDiff(code.replace(/\n+$/, ""));
  if (diff !== undefined) {
    return patched(text, diff);
  }
  const end = /\r\n|\r|\n/.exec(text)?.[0] ?? "\n";
  const lines = text.split(/\r\n|\r|\n/);
  const fresh = code.replace(/\n+$/, "").split("\n");
  const place = placeOf(lines, fresh);
  if (place === undefined) {
    return [...fresh, ""].join(end);
  }
  const [from, to] = place;
  return [...lines.slice(0, from), ...indented(fresh, lines[from] ?? ""), ...lines.slice(to)].join(end);
}

/** The lines that a definition has in the text: its first line, and what is indented below it. */
function placeOf(lines: readonly string[], fresh: readonly string[]): [number, number] | undefined {
  const first = (fresh[0] ?? "").trim();
  const found = lines.flatMap((line, index) => (line.trim() === first ? [index] : []));
  const [from] = found;
  if (first === "" || from === undefined || found.length > 1 || endOf(fresh, 0) < fresh.length) {
    return undefined;
  }
  const to = endOf(lines, from);
  return to - from > 1 ? [from, to] : undefined;
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
