/** A table on the page; when it has grown only the rows that have changed are made again. */

import type { MarkedToken, Tokens } from "marked";

import type { Block, BlockTools } from "./blocks";
import { make } from "./dom";
import { Lines } from "./inline";

export class TableBlock implements Block {
  raw = "";
  readonly element = make("div", "table");
  readonly #table = make("table", "");
  readonly #head = make("thead", "");
  readonly #body = make("tbody", "");
  #headKey = "";
  #rows: { key: string; element: HTMLElement }[] = [];

  constructor(
    readonly kind: string,
    private readonly tools: BlockTools,
  ) {
    this.element.tabIndex = 0;
    this.element.setAttribute("role", "group");
    this.element.setAttribute("aria-label", "Table");
    this.#table.append(this.#head, this.#body);
    this.element.append(this.#table);
  }

  show(token: MarkedToken): void {
    if (token.type !== "table") {
      return;
    }
    const head = keyOf(token.header);
    if (head !== this.#headKey) {
      this.#headKey = head;
      this.#head.replaceChildren(this.#row(token.header));
    }
    token.rows.forEach((cells, index) => {
      this.#putRow(cells, index);
    });
    for (const { element } of this.#rows.splice(token.rows.length)) {
      element.remove();
    }
  }

  finish(): void {
    // Nothing waits for its end.
  }

  #putRow(cells: Tokens.TableCell[], index: number): void {
    const [known, key] = [this.#rows[index], keyOf(cells)];
    if (known?.key === key) {
      return;
    }
    const element = this.#row(cells);
    if (known === undefined) {
      this.#body.append(element);
    } else {
      known.element.replaceWith(element);
    }
    this.#rows[index] = { key, element };
  }

  #row(cells: Tokens.TableCell[]): HTMLElement {
    const row = make("tr", "");
    for (const { header, align, text } of cells) {
      const cell = make(header ? "th" : "td", align ?? "");
      new Lines(cell, this.tools.links).show(text);
      row.append(cell);
    }
    return row;
  }
}

function keyOf(cells: readonly Tokens.TableCell[]): string {
  return cells.map(({ text, align }) => `${align ?? ""} ${text}`).join("\n");
}
