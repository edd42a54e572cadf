/** Unified diffs, above all as the server makes them: line ends are left out, long ones are cut. */

const HUNK = /^@@ -(\d+)(?:,(\d+))? \+\d+(?:,\d+)? @@/;
const NO_LINE_END = "\\ No newline at end of file";

/** A diff as it stands in a preview, below what else is said there. */
export interface Diff {
  /** What is said above it. */
  head: string;
  /** The file as the server shows it. */
  name: string;
  isNew: boolean;
  lines: string[];
}

/** Find the diff in a preview; undefined when there is none. */
export function parseDiff(preview: string): Diff | undefined {
  const lines = preview.split("\n");
  const start = lines.findIndex(
    (line, index) => line.startsWith("--- ") && lines[index + 1]?.startsWith("+++ b/") === true,
  );
  if (start === -1) {
    return undefined;
  }
  return {
    head: lines.slice(0, start).join(" "),
    name: lines[start + 1]?.slice("+++ b/".length) ?? "",
    isNew: lines[start] === "--- /dev/null",
    lines: lines.slice(start + 2),
  };
}

/** A run of changes: where it begins in the old text, and its lines, each after its sign. */
interface Hunk {
  first: number;
  lines: string[];
}

/** The text after the diff; undefined when it does not fit, or was cut. */
export function patched(text: string, diff: Diff): string | undefined {
  const before = marked(text);
  const after: string[] = [];
  let reached = 0;
  for (const { first, lines } of hunksOf(diff.lines)) {
    const old = lines.filter((line) => !line.startsWith("+")).map((line) => line.slice(1));
    const fits = first >= reached && old.every((line, index) => before[first + index] === line);
    if (!fits || !lines.every((line) => /^[ +-]/.test(line))) {
      return undefined;
    }
    const added = lines.filter((line) => !line.startsWith("-")).map((line) => line.slice(1));
    after.push(...before.slice(reached, first), ...added);
    reached = first + old.length;
  }
  return joined([...after, ...before.slice(reached)], /\r\n|\r|\n/.exec(text)?.[0] ?? "\n");
}

/** The diff that takes this one back. */
export function reversed(diff: Diff): Diff {
  const turned: Readonly<Record<string, string>> = { "+": "-", "-": "+" };
  const turn = (line: string) =>
    line.replace(/^@@ -(\S+) \+(\S+) @@/, "@@ -$2 +$1 @@").replace(/^[+-]/, (sign) => turned[sign] ?? sign);
  return { ...diff, isNew: false, lines: diff.lines.map(turn) };
}

function hunksOf(lines: readonly string[]): Hunk[] {
  const hunks: Hunk[] = [];
  for (const line of lines) {
    const [head, start, count] = HUNK.exec(line) ?? [];
    const hunk = hunks.at(-1);
    if (head !== undefined) {
      hunks.push({ first: Number(start) - (count === "0" ? 0 : 1), lines: [] });
    } else if (line === NO_LINE_END && hunk !== undefined) {
      hunk.lines.push(`${hunk.lines.pop() ?? ""}\n${line}`);
    } else {
      hunk?.lines.push(line);
    }
  }
  return hunks;
}

/** The lines of a text; one without a line end carries the mark that diffs give it. */
function marked(text: string): string[] {
  const lines = text.split(/\r\n|\r|\n/);
  const last = lines.pop() ?? "";
  return last === "" ? lines : [...lines, `${last}\n${NO_LINE_END}`];
}

function joined(lines: readonly string[], end: string): string {
  const [last = "", mark] = lines.at(-1)?.split("\n") ?? [];
  return (mark === undefined ? [...lines, ""] : [...lines.slice(0, -1), last]).join(end);
}
