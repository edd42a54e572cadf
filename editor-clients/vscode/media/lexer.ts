/** Markdown, read by marked into tokens. HTML in it is text like any other, and nesting has an end. */

import { Lexer, type MarkedToken, type Token, Tokenizer, type Tokens } from "marked";

/** Lists and quotes that lie deeper are shown as text. */
const MAX_DEPTH = 12;
/** What stands inside lines is read in runs of so many characters: its cost grows faster than its length. */
const MAX_RUN = 2_000;

const OPENING_FENCE = /^ {0,3}(`{3,}|~{3,})/;
const CLOSING_FENCE = /\n {0,3}(`{3,}|~{3,})[ \t]*\n+$/;
/** No fence is longer, with what stands around it. */
const MAX_FENCE = 200;

/** What `[label]: address` lines have said so far. */
export type Links = Record<string, Pick<Tokens.Link, "href" | "title">>;

class TextTokenizer extends Tokenizer {
  #depth = 0;

  override html(): undefined {
    return undefined;
  }

  override tag(): undefined {
    return undefined;
  }

  override list(source: string): Tokens.List | undefined {
    return this.#deeper(() => super.list(source));
  }

  override blockquote(source: string): Tokens.Blockquote | undefined {
    return this.#deeper(() => super.blockquote(source));
  }

  #deeper<T>(read: () => T): T | undefined {
    if (this.#depth === MAX_DEPTH) {
      return undefined;
    }
    this.#depth += 1;
    try {
      return read();
    } finally {
      this.#depth -= 1;
    }
  }
}

/** The blocks of a text; what is inside their lines is not read yet. */
export function blockTokens(text: string, links: Links): MarkedToken[] {
  return known(lexer(links).blockTokens(text, []));
}

/** What is inside lines: text, code, emphasis, links. */
export function inlineTokens(text: string, links: Links): MarkedToken[] {
  return known(lexer(links).inlineTokens(text, []));
}

/** Whether the block is code, and its closing fence stands there. */
export function isClosedCode(token: MarkedToken | undefined): boolean {
  if (token?.type !== "code") {
    return false;
  }
  const [, opening] = OPENING_FENCE.exec(token.raw) ?? [];
  const [, closing] = CLOSING_FENCE.exec(token.raw.slice(-MAX_FENCE)) ?? [];
  return opening !== undefined && closing?.startsWith(opening) === true;
}

/** A text in runs that are read one by one, cut where words or lines end. */
export function runsOf(text: string): string[] {
  const runs: string[] = [];
  let rest = text;
  while (rest.length > MAX_RUN) {
    const end = cutBefore(rest, MAX_RUN);
    runs.push(rest.slice(0, end));
    rest = rest.slice(end);
  }
  return [...runs, rest];
}

/** Where a text is cut at the latest, so that it is at the end of a line, or else of a word. */
function cutBefore(text: string, limit: number): number {
  const end = Math.max(text.lastIndexOf("\n", limit - 1), 0) || Math.max(text.lastIndexOf(" ", limit - 1), 0);
  return end === 0 ? limit - (/[\uD800-\uDBFF]/.test(text.charAt(limit - 1)) ? 1 : 0) : end + 1;
}

function lexer(links: Links): Lexer {
  const made = new Lexer({ gfm: true, tokenizer: new TextTokenizer() });
  Object.assign(made.tokens.links, links);
  return made;
}

/** Without extensions there are no others. */
function known(tokens: Token[]): MarkedToken[] {
  return tokens as MarkedToken[];
}
