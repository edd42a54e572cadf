/** A block of code in an answer: its language, its text, and once it is finished what can be done with it. */

import type { CodeAction } from "../src/viewMessages";
import { make, makeButton } from "./dom";
import { hasColours, highlight } from "./highlight";

const ACTIONS: readonly (readonly [CodeAction, string, string])[] = [
  ["copy", "Copy", "Copy the code"],
  ["insert", "Insert", "Insert the code at the cursor"],
  ["apply", "Apply…", "Show the code as a change of the active file, to be applied"],
];
/** As long a text as is coloured without a frame that anybody feels. */
const MAX_COLOURED_CHARACTERS = 12_000;
/** A run of lines of code ends with the line that reaches this. */
const MAX_RUN_CHARACTERS = 4_000;
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
    if (!hasColours(language)) {
      return;
    }
    if (code.textContent.length <= MAX_COLOURED_CHARACTERS) {
      this.#languages.set(code, language);
      this.#near.observe(code);
    } else {
      bar.querySelector(".language")?.append(" · too long for colours");
    }
  }
}

/** A block whose text is still to come, and the element it goes into. */
export function makeCodeBlock(language: string): { block: HTMLElement; code: HTMLElement } {
  const block = make("div", "code");
  const bar = make("div", "bar");
  bar.append(make("span", "language", language));
  const pre = make("pre", "");
  pre.tabIndex = 0;
  pre.setAttribute("role", "group");
  pre.setAttribute("aria-label", language === "" ? "Code" : `Code, ${language}`);
  const code = make("code", "");
  pre.append(code);
  block.append(bar, pre);
  return { block, code };
}

/**
 * Text that grows at its end, in runs of lines: only the last one is laid out again, and those that
 * nobody sees cost nothing.
 */
export class GrowingText {
  /** All but the last run. */
  #closed = "";
  #last = document.createTextNode("");

  constructor(private readonly root: HTMLElement) {
    this.#begin();
  }

  show(text: string): void {
    if (!text.startsWith(this.#closed)) {
      this.#closed = "";
      this.root.replaceChildren();
      this.#begin();
    }
    for (let rest = text.slice(this.#closed.length); ; rest = text.slice(this.#closed.length)) {
      const end = rest.length <= MAX_RUN_CHARACTERS ? -1 : rest.indexOf("\n", MAX_RUN_CHARACTERS);
      if (end === -1) {
        replaceEnd(this.#last, rest);
        return;
      }
      replaceEnd(this.#last, rest.slice(0, end + 1));
      this.#closed += this.#last.data;
      this.#begin();
    }
  }

  #begin(): void {
    this.#last = document.createTextNode("");
    const run = make("span", "run");
    run.append(this.#last);
    this.root.append(run);
  }
}

/** Change a text only where it has changed; a piece of a closing fence may have been taken for code. */
function replaceEnd(node: Text, text: string): void {
  let same = 0;
  const before = node.data;
  if (text.startsWith(before)) {
    same = before.length;
  } else {
    while (same < before.length && before.charCodeAt(same) === text.charCodeAt(same)) {
      same += 1;
    }
  }
  node.replaceData(same, before.length - same, text.slice(same));
}
