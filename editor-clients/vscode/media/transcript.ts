/**
 * The transcript: all items that are known, and the elements of those near to what the reader sees.
 *
 * However long the conversation is, the page holds a bounded run of it, which moves with the reader.
 */

import type { Item } from "../src/viewMessages";
import { paint, type Painted, type Tools } from "./paint";

/** How many items are painted at first, how many come at once, and how many there are at most. */
const END_ITEMS = 40;
const PAGE_ITEMS = 20;
const MAX_ITEMS = 160;
/** Fewer come at once where they hold more text than this: a frame has time for so much. */
const PAGE_CHARACTERS = 30_000;

export class Transcript {
  #items: Item[] = [];
  readonly #byId = new Map<string, Item>();
  /** The run that is painted: from the first index to before the second one. */
  #from = 0;
  #to = 0;
  readonly #painted = new Map<string, Painted>();
  /** What the reader has unfolded, also where it is not painted just now. */
  readonly #unfolded = new Set<string>();
  #pins: readonly number[] = [];

  constructor(
    private readonly root: HTMLElement,
    private readonly tools: Tools,
  ) {}

  get isEmpty(): boolean {
    return this.#items.length === 0;
  }

  get oldestId(): string {
    return this.#items[0]?.id ?? "";
  }

  /** Whether there are items above those that are painted. */
  get hasAbove(): boolean {
    return this.#from > 0;
  }

  get hasBelow(): boolean {
    return this.#to < this.#items.length;
  }

  /** What the user has said, oldest first. */
  prompts(): string[] {
    return this.#items.flatMap((item) => (item.kind === "user" ? [item.text] : []));
  }

  reset(items: readonly Item[]): void {
    this.#items = [...items];
    this.#byId.clear();
    this.#unfolded.clear();
    for (const item of items) {
      this.#byId.set(item.id, item);
    }
    this.#paintEnd();
  }

  /** Older items; they are painted when the reader comes near. */
  prepend(items: readonly Item[]): void {
    this.#items = [...items, ...this.#items];
    this.#from += items.length;
    this.#to += items.length;
    for (const item of items) {
      this.#byId.set(item.id, item);
    }
  }

  /** Show an item: a new one at the end, a known one in its place. */
  put(item: Item, isFollowed: boolean): void {
    const known = this.#byId.get(item.id);
    this.#byId.set(item.id, item);
    if (known !== undefined) {
      this.#items[this.#items.lastIndexOf(known)] = item;
      this.#painted.get(item.id)?.update(item);
      return;
    }
    const isWhole = !this.hasBelow;
    this.#items.push(item);
    if (isWhole && (isFollowed || this.#to - this.#from < MAX_ITEMS)) {
      this.#to += 1;
      this.root.append(this.#paint(item));
      this.#dropTop();
    }
  }

  append(id: string, delta: string): void {
    const item = this.#byId.get(id);
    if (item?.kind === "tool") {
      item.output += delta;
    } else if (item !== undefined) {
      item.text += delta;
    }
    this.#painted.get(id)?.append(delta);
  }

  /** The item is stored under this number. */
  setSeq(id: string, seq: number): void {
    const item = this.#byId.get(id);
    const element = this.#painted.get(id)?.element;
    if (item?.kind === "user" || item?.kind === "text") {
      item.seq = seq;
    }
    if (element !== undefined) {
      this.#mark(element, seq);
    }
  }

  /** Show which messages stay in the window. */
  setPins(pins: readonly number[]): void {
    if (pins.join() === this.#pins.join()) {
      return;
    }
    this.#pins = pins;
    for (const element of this.root.querySelectorAll<HTMLElement>("[data-seq]")) {
      this.#mark(element, Number(element.dataset.seq));
    }
  }

  remove(id: string): void {
    const index = this.#items.findLastIndex((item) => item.id === id);
    if (index === -1) {
      return;
    }
    this.#items.splice(index, 1);
    this.#byId.delete(id);
    this.#from -= index < this.#from ? 1 : 0;
    this.#to -= index < this.#to ? 1 : 0;
    this.#drop(id);
  }

  /** Paint some more above, and less below; the caller keeps the reader's place. */
  growUp(): void {
    const from = this.#from - fitting(this.#items.slice(Math.max(0, this.#from - PAGE_ITEMS), this.#from).reverse(), PAGE_ITEMS);
    this.root.prepend(...this.#items.slice(from, this.#from).map((item) => this.#paint(item)));
    this.#from = from;
    const to = Math.min(this.#to, from + MAX_ITEMS);
    this.#dropAll(this.#items.slice(to, this.#to));
    this.#to = to;
  }

  /** Paint some more below, and less above. */
  growDown(): void {
    const to = this.#to + fitting(this.#items.slice(this.#to, this.#to + PAGE_ITEMS), PAGE_ITEMS);
    this.root.append(...this.#items.slice(this.#to, to).map((item) => this.#paint(item)));
    this.#to = to;
    this.#dropTop();
  }

  /** What is shown of an item, painted with what is around it; undefined where it is not known. */
  goTo(id: string): HTMLElement | undefined {
    const at = this.#items.findIndex((item) => item.id === id);
    if (at !== -1 && !this.#painted.has(id)) {
      const before = fitting(this.#items.slice(Math.max(0, at - PAGE_ITEMS), at).reverse(), PAGE_ITEMS);
      this.#paintRun(at - before, at + fitting(this.#items.slice(at, at + PAGE_ITEMS), PAGE_ITEMS));
    }
    return this.#painted.get(id)?.element;
  }

  /** Paint the end, if it is not painted. */
  toEnd(): void {
    if (this.hasBelow) {
      this.#paintEnd();
    }
  }

  #paintEnd(): void {
    const count = fitting(this.#items.slice(-END_ITEMS).reverse(), END_ITEMS);
    this.#paintRun(this.#items.length - count, this.#items.length);
  }

  #paintRun(from: number, to: number): void {
    this.#painted.clear();
    [this.#from, this.#to] = [from, to];
    this.root.replaceChildren(...this.#items.slice(from, to).map((item) => this.#paint(item)));
  }

  #dropTop(): void {
    const from = Math.max(this.#from, this.#to - MAX_ITEMS);
    this.#dropAll(this.#items.slice(this.#from, from));
    this.#from = from;
  }

  #dropAll(items: readonly Item[]): void {
    for (const { id } of items) {
      this.#drop(id);
    }
  }

  #drop(id: string): void {
    this.#painted.get(id)?.element.remove();
    this.#painted.delete(id);
  }

  #paint(item: Item): HTMLElement {
    const painted = paint(item, this.tools);
    const { element } = painted;
    element.dataset.kind = item.kind;
    element.dataset.id = item.id;
    if ("seq" in item) {
      this.#mark(element, item.seq);
    }
    if (element instanceof HTMLDetailsElement) {
      this.#keepFold(element, item.id);
    }
    this.#painted.set(item.id, painted);
    return element;
  }

  #keepFold(details: HTMLDetailsElement, id: string): void {
    details.open = this.#unfolded.has(id);
    details.addEventListener("toggle", () => {
      if (details.open) {
        this.#unfolded.add(id);
      } else {
        this.#unfolded.delete(id);
      }
    });
  }

  /** A stored message, whose menu VS Code makes of its context. */
  #mark(element: HTMLElement, seq: number): void {
    const isPinned = this.#pins.includes(seq);
    element.dataset.seq = String(seq);
    element.classList.toggle("pinned", isPinned);
    element.dataset.vscodeContext = JSON.stringify({ tiroMessage: isPinned ? "pinned" : "free", seq });
  }
}

/** How many of these items may be painted at once: so many, or fewer long ones, but one. */
function fitting(items: readonly Item[], limit: number): number {
  let characters = 0;
  const past = items.slice(0, limit).findIndex((item) => {
    characters += item.kind === "tool" ? item.output.length : item.text.length;
    return characters > PAGE_CHARACTERS;
  });
  return past === -1 ? Math.min(limit, items.length) : Math.max(1, past);
}
