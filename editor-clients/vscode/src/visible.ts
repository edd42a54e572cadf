/**
 * What cannot be seen, made visible: one way everywhere that the user decides by what is shown.
 *
 * Controls stand there as their pictures, marks of direction, characters of no width and fillers by their
 * number, as the server and its terminal write them.
 */

/** Those that only choose how the sign before them looks hide nothing. */
const HIDDEN = /(?![\uFE0E\uFE0F])(?:[^\P{C}\t]|[\p{Default_Ignorable_Code_Point}\p{Zl}\p{Zp}\u2800])/gu;
/** The same in a text of several lines, whose ends are left as they are. */
const HIDDEN_IN_LINES = new RegExp(String.raw`(?!\r?\n)${HIDDEN.source}`, "gu");

/** A text of one line, such as a command or a name. */
export function visible(text: string): string {
  return text.replaceAll(HIDDEN, sign);
}

/** A text of several lines, such as a file or a diff. */
export function visibleLines(text: string): string {
  return text.replaceAll(HIDDEN_IN_LINES, sign);
}

function sign(hidden: string): string {
  const code = hidden.codePointAt(0) ?? 0;
  if (code < 0x20 || code === 0x7f) {
    return String.fromCodePoint(code === 0x7f ? 0x2421 : 0x2400 + code);
  }
  return `⟨U+${code.toString(16).toUpperCase().padStart(4, "0")}⟩`;
}
