/**
 * Markdown of a streamed answer as elements.
 *
 * Only the last block can still change, so only its text is read again when more arrives; what comes
 * at once is read in steps, a few in a frame. Text only ever becomes text nodes.
 */

import type { MarkedToken, Tokens } from "marked";

import { Blocks } from "./blocks";
import { make } from "./dom";
import type { Frames } from "./frames";
import { blockTokens, isClosedCode, type Links } from "./lexer";

/** So many characters are read in a step. */
const MAX_STEP = 4_000;
/** A run of blocks ends with the one that reaches this. */
const MAX_RUN = 4_000;
/** A block that is longer goes on as a new one; code and tables do not, they cost little to read. */
const MAX_OPEN = 32_000;
const ENDLESS = new Set(["code", "table"]);
/** Items of a list that are read again: the last one, and one before it that says which list it is. */
const OPEN_ITEMS = 2;
/** The beginning of a last line that would make something else of the lines before it, or show as a stray mark. */
const UNDECIDED = /(?:^|\n)[ \t>]*(?:[-=]+|[*+_~`|:#]+)[ \t]*$/;
const MAX_UNDECIDED = 80;
/** Until the second line is complete it is a guess. */
const IS_TABLE = /^.*\n.*\n/;

/** Paints an answer into an element while it arrives. */
export class MarkdownStream {
  /** What was not read yet. */
  #waiting = "";
  /** The text of what is shown and can still change. */
  #open = "";
  #isEnded = false;
  #isQueued = false;
  readonly #links: Links = {};
  readonly #blocks: Blocks;
  /** How much of the text stands in the last run of blocks. */
  #runLength = 0;

  /** `finished` gets every block of code that is complete, and its language. */
  constructor(
    private readonly root: HTMLElement,
    private readonly frames: Pick<Frames, "add">,
    finished: (block: HTMLElement, language: string) => void = () => undefined,
  ) {
    this.#blocks = new Blocks(this.#newRun(), { links: this.#links, finished });
  }

  /** More text; the first of it is shown at once, so that the element has about its height. */
  push(text: string): void {
    this.#waiting += text;
    if (!this.#isQueued && this.root.textContent === "") {
      this.#step();
    }
    this.#queue();
  }

  /** No more text will come. */
  end(): void {
    if (!this.#isEnded) {
      this.#isEnded = true;
      if (this.#waiting.length <= MAX_STEP) {
        this.#step();
      }
      this.#queue();
    }
  }

  #queue(): void {
    if (!this.#isQueued && this.#waiting !== "") {
      this.#isQueued = true;
      this.frames.add(() => {
        // What was taken off the page is not painted any further.
        this.#isQueued = this.root.isConnected && this.#step();
        return this.#isQueued;
      });
    }
  }

  /** Read some more, and show it; whether more waits. */
  #step(): boolean {
    this.#open = (this.#open + this.#waiting.slice(0, MAX_STEP)).replaceAll("\r\n", "\n");
    this.#waiting = this.#waiting.slice(MAX_STEP);
    const isLast = this.#isEnded && this.#waiting === "";
    const undecided = isLast ? "" : undecidedEnd(this.#open);
    const text = this.#open.slice(0, this.#open.length - undecided.length);
    const tokens = blockTokens(text, this.#links);
    for (const { tag, href, title } of tokens.filter((token) => token.type === "def")) {
      this.#links[tag] = { href, title };
    }
    this.#blocks.show(tokens);
    this.#finish(tokens, text, isLast);
    return this.#waiting !== "";
  }

  /** Whatever will not change any more is not read again. */
  #finish(tokens: readonly MarkedToken[], text: string, isLast: boolean): void {
    const count = isLast ? tokens.length : finishedCount(tokens);
    const finished = tokens.slice(0, count);
    const read = finished.map(({ raw }) => raw).join("");
    if (!isLast && !text.startsWith(read)) {
      return;
    }
    this.#blocks.finish(finished.filter(({ type }) => type !== "space").length);
    this.#open = isLast ? "" : this.#open.slice(read.length);
    this.#runLength += read.length;
    const list = tokens[count];
    if (list?.type === "list" && list.raw.length > MAX_RUN) {
      this.#endList(list);
    }
    if (this.#runLength > MAX_RUN) {
      this.#beginRun();
    }
  }

  /** A long list goes on as another one: only its last items can still change. */
  #endList({ items }: Tokens.List): void {
    const read = items.slice(0, -OPEN_ITEMS).map(({ raw }) => raw).join("");
    if (read !== "" && this.#open.startsWith(read)) {
      this.#blocks.endList(items.length - OPEN_ITEMS);
      this.#open = this.#open.slice(read.length);
      this.#beginRun();
      this.#blocks.show(blockTokens(this.#open, this.#links));
    }
  }

  #beginRun(): void {
    this.#runLength = 0;
    this.#blocks.moveTo(this.#newRun());
  }

  /** Blocks stand in runs: those that nobody sees cost nothing. */
  #newRun(): HTMLElement {
    const run = make("div", "run");
    this.root.append(run);
    return run;
  }
}

/** How many tokens cannot change: those before one that is certain to be what it is, and what is too long. */
function finishedCount(tokens: readonly MarkedToken[]): number {
  const last = tokens.findLastIndex(({ type }) => type !== "space");
  const token = tokens[last];
  if (token === undefined) {
    return 0;
  }
  const isLong = token.raw.length > MAX_OPEN && !ENDLESS.has(token.type);
  if (isClosedCode(token) || isLong) {
    return last + 1;
  }
  const isCertain = last < tokens.length - 1 || (token.type === "table" ? IS_TABLE : /\n/).test(token.raw);
  return isCertain ? last : Math.max(0, tokens.slice(0, last).findLastIndex(({ type }) => type !== "space"));
}

/** A last line that does not say yet what it is; where a block becomes too long, any last line. */
function undecidedEnd(text: string): string {
  if (text.length > MAX_OPEN && text.includes("\n")) {
    return text.slice(text.lastIndexOf("\n") + 1);
  }
  const line = text.slice(Math.max(0, text.length - MAX_UNDECIDED));
  return UNDECIDED.exec(line)?.[0].replace(/^\n/, "") ?? "";
}
