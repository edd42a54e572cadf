/** A block of code in an answer: its language, its text, and once it is finished what can be done with it. */

import type { CodeAction } from "../src/viewMessages";
import { make, makeButton } from "./dom";
import { highlight } from "./highlight";

const ACTIONS: readonly (readonly [CodeAction, string, string])[] = [
  ["copy", "Copy", "Copy the code"],
  ["insert", "Insert", "Insert the code at the cursor"],
  ["apply", "Apply…", "Show the code as a change of the active file, to be applied"],
];
/** As long a text as is coloured without a frame that anybody feels. */
const MAX_COLOURED_CHARACTERS = 8_000;
/** Blocks are coloured when they come so near to what is seen. */
const NEAR = "600px";

/** What happens with finished blocks: colours in idle time, and the user's clicks. */
export class CodeBlocks {
  /** The languages of blocks that were not near yet. */
  readonly #languages = new WeakMap<Element, string>();
  readonly #near: IntersectionObserver;

  constructor(private readonly act: (action: CodeAction, text: string) => void) {
    this.#near = new IntersectionObserver(
      (entries) => {
        for (const { target } of entries.filter(({ isIntersecting }) => isIntersecting)) {
          this.#near.unobserve(target);
          requestIdleCallback(() => {
            highlight(target, this.#languages.get(target) ?? "");
          });
        }
      },
      { rootMargin: NEAR },
    );
  }

  /** No more text will come. */
  finish(block: HTMLElement, language: string): void {
    const code = block.querySelector("code");
    const bar = block.querySelector(".bar");
    if (code === null || bar === null) {
      return;
    }
    for (const [action, label, meaning] of ACTIONS) {
      const button = makeButton(label, () => {
        this.act(action, code.textContent);
      });
      button.className = "quiet";
      button.title = meaning;
      bar.append(button);
    }
    if (language !== "" && code.textContent.length <= MAX_COLOURED_CHARACTERS) {
      this.#languages.set(code, language);
      this.#near.observe(code);
    }
  }
}

/** A block whose text is still to come, and where it goes. */
export function makeCodeBlock(language: string): { block: HTMLElement; text: Text } {
  const block = make("div", "code");
  const bar = make("div", "bar");
  bar.append(make("span", "language", language));
  const pre = make("pre", "");
  pre.tabIndex = 0;
  pre.setAttribute("role", "group");
  pre.setAttribute("aria-label", language === "" ? "Code" : `Code, ${language}`);
  const code = make("code", "");
  const text = document.createTextNode("");
  code.append(text);
  pre.append(code);
  block.append(bar, pre);
  return { block, text };
}
