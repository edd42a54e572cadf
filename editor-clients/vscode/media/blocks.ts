/**
 * The blocks of a text as elements.
 *
 * When the text has grown its blocks are shown again, and each is compared with what is on the page:
 * one that is the same is left alone, one that has grown changes only where it has.
 */

import type { MarkedToken, Tokens } from "marked";

import { GrowingText, makeCodeBlock } from "./codeBlock";
import { make } from "./dom";
import { Lines } from "./inline";
import type { Links } from "./lexer";
import { TableBlock } from "./table";

const NO_BLOCKS = new Set(["space", "checkbox"]);
const TASK = /^\[[ xX]\] +/;

/** What blocks need: what links mean, and who takes finished code. */
export interface BlockTools {
  links: Links;
  finished: (block: HTMLElement, language: string) => void;
}

/** A block on the page. */
export interface Block {
  element: HTMLElement;
  kind: string;
  raw: string;
  show(token: MarkedToken): void;
  /** It will not change any more. */
  finish(): void;
}

/** Blocks one below the other. */
export class Blocks {
  #blocks: Block[] = [];

  constructor(
    private root: HTMLElement,
    private readonly tools: BlockTools,
  ) {}

  show(tokens: readonly MarkedToken[]): void {
    const shown = tokens.filter(({ type }) => !NO_BLOCKS.has(type));
    shown.forEach((token, index) => {
      this.#put(token, index);
    });
    for (const { element } of this.#blocks.splice(shown.length)) {
      element.remove();
    }
  }

  /** So many blocks from the first one on will not change any more. */
  finish(count = this.#blocks.length): void {
    for (const block of this.#blocks.splice(0, count)) {
      block.finish();
    }
  }

  /** What follows goes into another element, and so do the blocks that can still change. */
  moveTo(root: HTMLElement): void {
    this.root = root;
    root.append(...this.#blocks.map(({ element }) => element));
  }

  /** The list that comes first ends behind so many items; the others are not shown any more. */
  endList(count: number): void {
    const list = this.#blocks[0];
    if (list instanceof ListBlock) {
      list.cut(count);
      this.finish(1);
    }
  }

  #put(token: MarkedToken, index: number): void {
    const known = this.#blocks[index];
    if (known?.kind === kindOf(token)) {
      if (known.raw !== token.raw) {
        known.raw = token.raw;
        known.show(token);
      }
      return;
    }
    const made = makeBlock(token, this.tools);
    made.show(token);
    if (known === undefined) {
      this.root.append(made.element);
    } else {
      known.element.replaceWith(made.element);
    }
    this.#blocks[index] = made;
  }
}

/** Blocks of the same kind can become each other. */
function kindOf(token: MarkedToken): string {
  switch (token.type) {
    case "heading":
      return `heading ${token.depth}`;
    case "code":
      return `code ${languageOf(token)}`;
    case "list":
      return token.ordered ? "ol" : "ul";
    case "text":
      return "paragraph";
    default:
      return token.type;
  }
}

function languageOf({ lang = "" }: Tokens.Code): string {
  return /^[\w+#.-]*/.exec(lang)?.[0] ?? "";
}

function makeBlock(token: MarkedToken, tools: BlockTools): Block {
  switch (token.type) {
    case "code":
      return new CodeBlock(kindOf(token), languageOf(token), tools);
    case "list":
      return new ListBlock(kindOf(token), token, tools);
    case "table":
      return new TableBlock(kindOf(token), tools);
    case "blockquote":
      return new QuoteBlock(kindOf(token), tools);
    case "hr":
      return new LineBlock(kindOf(token), make("hr", ""), tools);
    case "heading":
      return new LineBlock(kindOf(token), make(`h${Math.min(6, token.depth + 2)}`, ""), tools);
    default:
      return new LineBlock(kindOf(token), make("p", ""), tools);
  }
}

/** A paragraph, a heading, a rule; also what is none of the others, as it was written. */
class LineBlock implements Block {
  raw = "";
  readonly #lines: Lines;

  constructor(
    readonly kind: string,
    readonly element: HTMLElement,
    { links }: BlockTools,
  ) {
    this.#lines = new Lines(element, links);
  }

  show(token: MarkedToken): void {
    if (token.type === "paragraph" || token.type === "text" || token.type === "heading") {
      this.#lines.show(token.text);
    } else if (token.type !== "hr") {
      this.#lines.show(token.raw.trimEnd());
    }
  }

  finish(): void {
    // Nothing waits for its end.
  }
}

class CodeBlock implements Block {
  raw = "";
  readonly element: HTMLElement;
  readonly #text: GrowingText;

  constructor(
    readonly kind: string,
    private readonly language: string,
    private readonly tools: BlockTools,
  ) {
    const { block, code } = makeCodeBlock(language);
    this.element = block;
    this.#text = new GrowingText(code);
  }

  show(token: MarkedToken): void {
    this.#text.show(token.type === "code" ? token.text : token.raw);
  }

  finish(): void {
    this.tools.finished(this.element, this.language);
  }
}

class QuoteBlock implements Block {
  raw = "";
  readonly element = make("blockquote", "");
  readonly #blocks: Blocks;

  constructor(
    readonly kind: string,
    tools: BlockTools,
  ) {
    this.#blocks = new Blocks(this.element, tools);
  }

  show(token: MarkedToken): void {
    this.#blocks.show(token.type === "blockquote" ? (token.tokens as MarkedToken[]) : []);
  }

  finish(): void {
    this.#blocks.finish();
  }
}

class ListBlock implements Block {
  raw = "";
  readonly element: HTMLElement;
  #items: ListItem[] = [];

  constructor(
    readonly kind: string,
    { ordered, start }: Tokens.List,
    private readonly tools: BlockTools,
  ) {
    this.element = make(ordered ? "ol" : "ul", "");
    if (ordered && start !== 1) {
      this.element.setAttribute("start", String(start));
    }
  }

  show(token: MarkedToken): void {
    if (token.type !== "list") {
      return;
    }
    this.element.classList.toggle("loose", token.loose);
    token.items.forEach((item, index) => {
      const shown = this.#items[index] ?? this.#add();
      shown.show(item);
    });
    this.cut(token.items.length);
  }

  /** Show only so many items. */
  cut(count: number): void {
    for (const { element } of this.#items.splice(count)) {
      element.remove();
    }
  }

  finish(): void {
    this.#items.forEach((item) => {
      item.finish();
    });
  }

  #add(): ListItem {
    const item = new ListItem(this.tools);
    this.element.append(item.element);
    this.#items.push(item);
    return item;
  }
}

class ListItem {
  readonly element = make("li", "");
  #raw: string | undefined;
  readonly #blocks: Blocks;

  constructor(tools: BlockTools) {
    this.#blocks = new Blocks(this.element, tools);
  }

  show({ raw, task, checked = false, tokens }: Tokens.ListItem): void {
    if (raw === this.#raw) {
      return;
    }
    this.#raw = raw;
    this.element.classList.toggle("task", task);
    this.element.querySelector(":scope > input")?.remove();
    if (task) {
      this.element.prepend(checkbox(checked));
    }
    const blocks = (tokens as MarkedToken[]).filter(({ type }) => type !== "checkbox");
    const [first, ...others] = blocks;
    const isMarked = task && (first?.type === "paragraph" || first?.type === "text");
    this.#blocks.show(isMarked ? [{ ...first, text: first.text.replace(TASK, "") }, ...others] : blocks);
  }

  finish(): void {
    this.#blocks.finish();
  }
}

function checkbox(isChecked: boolean): HTMLElement {
  const box = document.createElement("input");
  box.type = "checkbox";
  box.disabled = true;
  box.checked = isChecked;
  box.setAttribute("aria-label", isChecked ? "Done" : "To do");
  return box;
}
