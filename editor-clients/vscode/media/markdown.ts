/**
 * Markdown of a streamed answer as elements, line by line.
 *
 * A finished line is painted once and never looked at again, so a delta costs the same in a long
 * answer as in a short one. Text only ever becomes text nodes; no markup of the model is run.
 */

import { makeCodeBlock } from "./codeBlock";

/** A line longer than this is shown as it stands until it ends. */
const MAX_LIVE_LINE = 2_000;

const FENCE = /^\s{0,3}(```+|~~~+)\s*([\w+#.-]*)/;
const HEADING = /^(#{1,6})\s+(.*)$/;
const BULLET = /^(\s*)[-*+]\s+(.*)$/;
const NUMBERED = /^(\s*)(\d{1,9})[.)]\s+(.*)$/;
const RULE = /^\s*([-*_])(\s*\1){2,}\s*$/;
const QUOTE = /^>\s?(.*)$/;
const INLINE = new RegExp(
  [
    "(`+)(.+?)\\1",
    "\\*\\*(.+?)\\*\\*",
    "\\*([^\\s*](?:[^*]*[^\\s*])?)\\*",
    "(?<!\\w)_([^\\s_](?:[^_]*[^\\s_])?)_(?!\\w)",
    "\\[([^\\]]+)\\]\\((https?:\\/\\/[^\\s)]+)\\)",
  ].join("|"),
  "g",
);

/** Paints an answer into an element while it arrives. */
export class MarkdownStream {
  /** The last line, not finished yet. */
  #line = "";
  /** Where the last line is shown. */
  #live: HTMLElement | undefined;
  #block: HTMLElement | undefined;
  #code: Text | undefined;
  #fence = "";
  #language = "";

  /** `finished` gets every block of code that is complete, and its language. */
  constructor(
    private readonly root: HTMLElement,
    private readonly finished: (block: HTMLElement, language: string) => void = () => undefined,
  ) {}

  /** More text. */
  push(text: string): void {
    const lines = text.split("\n");
    lines.forEach((part, index) => {
      this.#line += part;
      if (index < lines.length - 1) {
        this.#finishLine();
      }
    });
    this.#showLive();
  }

  /** No more text will come. */
  end(): void {
    if (this.#line !== "") {
      this.#finishLine();
    }
    this.#dropLive();
    this.#closeCode();
  }

  #finishLine(): void {
    const line = this.#line;
    this.#line = "";
    this.#dropLive();
    if (this.#code !== undefined) {
      this.#codeLine(line);
    } else {
      this.#textLine(line);
    }
  }

  #codeLine(line: string): void {
    if (line.trim().startsWith(this.#fence) && line.trim().length <= this.#fence.length + 2) {
      this.#closeCode();
      return;
    }
    this.#code?.appendData(`${line}\n`);
  }

  #textLine(line: string): void {
    const fence = FENCE.exec(line);
    if (fence !== null) {
      this.#openCode(fence[1] ?? "```", fence[2] ?? "");
      return;
    }
    if (line.trim() === "") {
      this.#block = undefined;
      return;
    }
    const heading = HEADING.exec(line);
    if (heading !== null) {
      const level = Math.min(6, (heading[1] ?? "#").length + 2);
      inline(this.#open(`h${level}`), heading[2] ?? "");
      this.#block = undefined;
      return;
    }
    if (RULE.test(line)) {
      this.#open("hr");
      this.#block = undefined;
      return;
    }
    this.#itemOrText(line);
  }

  #itemOrText(line: string): void {
    const bullet = BULLET.exec(line);
    const numbered = NUMBERED.exec(line);
    const quote = QUOTE.exec(line);
    if (bullet !== null) {
      this.#item("UL", bullet[1] ?? "", bullet[2] ?? "");
    } else if (numbered !== null) {
      this.#item("OL", numbered[1] ?? "", numbered[3] ?? "", Number(numbered[2]));
    } else if (quote !== null) {
      this.#continue("BLOCKQUOTE", quote[1] ?? "");
    } else {
      this.#continue("P", line);
    }
  }

  /** A line of a paragraph or a quote. */
  #continue(tag: string, line: string): void {
    const isOpen = this.#block?.tagName === tag;
    const block = isOpen && this.#block !== undefined ? this.#block : this.#open(tag);
    if (isOpen) {
      block.append("\n");
    }
    inline(block, line);
  }

  #item(tag: "OL" | "UL", indent: string, line: string, number = 1): void {
    const isOpen = this.#block?.tagName === tag;
    const list = isOpen && this.#block !== undefined ? this.#block : this.#open(tag);
    if (!isOpen && list instanceof HTMLOListElement) {
      list.start = number;
    }
    const item = document.createElement("li");
    if (indent.length >= 2) {
      item.className = "nested";
    }
    inline(item, line);
    list.append(item);
  }

  #openCode(fence: string, language: string): void {
    const { block, text } = makeCodeBlock(language);
    this.#fence = fence;
    this.#language = language;
    this.#block = block;
    this.#code = text;
    this.root.append(block);
  }

  #closeCode(): void {
    const block = this.#code === undefined ? undefined : this.#block;
    this.#code = undefined;
    if (block !== undefined) {
      this.#block = undefined;
      this.finished(block, this.#language);
    }
  }

  #open(tag: string): HTMLElement {
    const block = document.createElement(tag);
    this.#block = block;
    this.root.append(block);
    return block;
  }

  #showLive(): void {
    if (this.#line === "") {
      return;
    }
    this.#live ??= this.#makeLive();
    if (this.#line.length <= MAX_LIVE_LINE && this.#code === undefined) {
      this.#live.replaceChildren();
      inline(this.#live, this.#line);
    } else {
      appendRest(this.#live, this.#line);
    }
  }

  #makeLive(): HTMLElement {
    const live = document.createElement("span");
    live.className = "live";
    const parent = this.#code?.parentElement ?? this.root;
    parent.append(live);
    return live;
  }

  #dropLive(): void {
    this.#live?.remove();
    this.#live = undefined;
  }
}

/** Add what the element does not show yet of a growing line. */
function appendRest(live: HTMLElement, line: string): void {
  const shown = live.firstChild;
  if (live.childNodes.length === 1 && shown instanceof Text) {
    shown.appendData(line.slice(shown.length));
  } else {
    live.replaceChildren(line);
  }
}

/** One line's inline markup: code, strong, emphasis, links to the web. */
function inline(parent: HTMLElement, line: string): void {
  let end = 0;
  for (const match of line.matchAll(INLINE)) {
    parent.append(line.slice(end, match.index));
    parent.append(inlineElement(match));
    end = match.index + match[0].length;
  }
  parent.append(line.slice(end));
}

function inlineElement(match: RegExpMatchArray): HTMLElement {
  const [, , code, strong, starred, underscored, label, href] = match;
  const emphasis = starred ?? underscored;
  if (code !== undefined) {
    return element("code", code);
  }
  if (strong !== undefined) {
    return element("strong", strong);
  }
  if (emphasis !== undefined) {
    return element("em", emphasis);
  }
  const link = element("a", label ?? "");
  link.setAttribute("href", href ?? "");
  return link;
}

function element(tag: string, text: string): HTMLElement {
  const made = document.createElement(tag);
  made.textContent = text;
  return made;
}
