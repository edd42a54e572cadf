/** Completion of `@…` in the prompt: a list above it, whose first row Enter or Tab takes. */

import type { FromView, Mention } from "../src/viewMessages";
import { make } from "./dom";

/** `@` at the start of a word, and the letters up to the cursor. */
const TOKEN = /(?:^|\s)@([\w./-]*)$/;
/** So long after the last letter it is searched. */
const CALM_MS = 60;

export class Mentions {
  #query: string | undefined;
  #rows: readonly Mention[] = [];
  #active = 0;
  #timer: ReturnType<typeof setTimeout> | undefined;

  constructor(
    private readonly input: HTMLTextAreaElement,
    private readonly list: HTMLElement,
    private readonly post: (message: FromView) => void,
    private readonly changed: () => void,
  ) {
    input.addEventListener("blur", () => {
      this.close();
    });
  }

  /** The text or the cursor has moved. */
  look(): void {
    const { selectionStart, selectionEnd, value } = this.input;
    const query = selectionStart === selectionEnd ? TOKEN.exec(value.slice(0, selectionStart))?.[1] : undefined;
    if (query === undefined) {
      this.close();
    } else if (query !== this.#query) {
      this.#query = query;
      clearTimeout(this.#timer);
      this.#timer = setTimeout(() => {
        this.post({ type: "findMentions", query });
      }, CALM_MS);
    }
  }

  /** What was found for a query; one that is not asked any more is dropped. */
  show(query: string, rows: readonly Mention[]): void {
    if (query === this.#query) {
      this.#rows = rows;
      this.#active = 0;
      this.#paint();
    }
  }

  /** Whether the key was for the list. */
  press(key: string): boolean {
    if (this.list.hidden) {
      return false;
    }
    if (key === "ArrowDown" || key === "ArrowUp") {
      this.#active = (this.#active + (key === "ArrowDown" ? 1 : this.#rows.length - 1)) % this.#rows.length;
      this.#paint();
    } else if (key === "Enter" || key === "Tab") {
      this.#take(this.#active);
    } else if (key === "Escape") {
      this.#rows = [];
      this.#paint();
    } else {
      return false;
    }
    return true;
  }

  close(): void {
    clearTimeout(this.#timer);
    this.#query = undefined;
    this.#rows = [];
    this.#paint();
  }

  #take(index: number): void {
    const row = this.#rows[index];
    const { selectionStart, value } = this.input;
    const start = selectionStart - "@".length - (this.#query?.length ?? 0);
    this.close();
    if (row !== undefined) {
      const after = value.slice(selectionStart);
      this.input.value = `${value.slice(0, start)}${row.name}${after.startsWith(" ") ? "" : " "}${after}`;
      const caret = start + row.name.length + 1;
      this.input.setSelectionRange(caret, caret);
      this.changed();
      this.post({ type: "mention", value: row.value });
    }
  }

  #paint(): void {
    this.list.hidden = this.#rows.length === 0;
    this.list.replaceChildren(...this.#rows.map((row, index) => this.#row(row, index)));
    if (this.list.hidden) {
      this.input.removeAttribute("aria-activedescendant");
      return;
    }
    this.input.setAttribute("aria-activedescendant", `mention${this.#active}`);
    this.list.children[this.#active]?.scrollIntoView({ block: "nearest" });
  }

  #row({ name, detail }: Mention, index: number): HTMLElement {
    const row = make("li", "");
    row.id = `mention${index}`;
    row.setAttribute("role", "option");
    row.setAttribute("aria-selected", String(index === this.#active));
    row.append(make("span", "name", name), " ", make("span", "detail", detail));
    row.addEventListener("mousedown", (event) => {
      event.preventDefault(); // the input keeps the focus
      this.#take(index);
    });
    return row;
  }
}
