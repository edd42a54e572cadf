/** What is inside lines as nodes: text nodes, a few elements, links to the web. */

import type { MarkedToken, Tokens } from "marked";

import { make } from "./dom";
import { inlineTokens, type Links, runsOf } from "./lexer";

/** The addresses that a click may open. */
const SAFE = /^(?:https?:\/\/|mailto:)/i;
const ENTITIES: Readonly<Record<string, string>> = {
  "&amp;": "&", "&lt;": "<", "&gt;": ">", "&quot;": '"', "&apos;": "'", "&nbsp;": "\u00A0",
};

/** The lines of a paragraph, heading or cell; only the runs that have changed are made again. */
export class Lines {
  #runs: { text: string; nodes: Node[] }[] = [];

  constructor(
    readonly element: HTMLElement,
    private readonly links: Links,
  ) {}

  show(text: string): void {
    const runs = runsOf(text);
    const first = runs.findIndex((run, index) => run !== this.#runs[index]?.text);
    const same = first === -1 ? runs.length : first;
    for (const { nodes } of this.#runs.splice(same)) {
      nodes.forEach((node) => {
        node.parentNode?.removeChild(node);
      });
    }
    for (const run of runs.slice(same)) {
      const nodes = inlineTokens(run, this.links).map(nodeOf);
      this.element.append(...nodes);
      this.#runs.push({ text: run, nodes });
    }
  }
}

function nodeOf(token: MarkedToken): Node {
  switch (token.type) {
    case "strong":
    case "em":
    case "del":
      return withTokens(make(token.type, ""), token.tokens);
    case "codespan":
      return make("code", "", token.text);
    case "link":
    case "image":
      return link(token);
    case "br":
      return document.createTextNode("\n");
    case "text":
      return document.createTextNode(token.text.replaceAll(/&[a-z]+;/g, (name) => ENTITIES[name] ?? name));
    case "escape":
      return document.createTextNode(token.text);
    default:
      return document.createTextNode(token.raw);
  }
}

/** A link says where it leads; an image is one, too: nothing is loaded. One that is not safe stays as it was written. */
function link(token: Tokens.Link | Tokens.Image): Node {
  if (!SAFE.test(token.href)) {
    return document.createTextNode(token.raw);
  }
  const element = make("a", "");
  element.setAttribute("href", token.href);
  element.title = token.href;
  return withTokens(element, token.tokens);
}

function withTokens(element: HTMLElement, tokens: readonly unknown[]): HTMLElement {
  element.append(...(tokens as MarkedToken[]).map(nodeOf));
  return element;
}
