/**
 * The question whether a tool may run, above the input; the oldest one, where several wait.
 *
 * It takes no focus by itself. A click just after it has come was meant for something else.
 */

import { lastingSentence } from "../src/lasting";
import { type Decision, DECISIONS, type QuestionItem } from "../src/viewMessages";
import { make, makeButton, makeDiffLine } from "./dom";

const CALM_MS = 500;

/** What the user does with a question. */
export interface Answers {
  answer: (id: string, decision: Decision, message: string) => void;
  showMore: (id: string) => void;
  /** The question is gone, and the focus was in it. */
  leave: () => void;
}

export class QuestionCard {
  #id: string | undefined;

  constructor(
    private readonly root: HTMLElement,
    private readonly answers: Answers,
  ) {}

  /** Show a question, or none; what is typed into one that stays stays. */
  show(question: QuestionItem | null, others: number): void {
    if (question === null || question.id !== this.#id) {
      this.#replace(question);
    }
    const more = this.root.querySelector<HTMLElement>(".others");
    if (more !== null) {
      more.hidden = others === 0;
      more.textContent = others === 1 ? "1 more question waits" : `${others} more questions wait`;
    }
  }

  /** Take the focus: a screen reader reads the question, Tab reaches its buttons. */
  focus(): void {
    this.root.querySelector<HTMLElement>(".question")?.focus();
  }

  #replace(question: QuestionItem | null): void {
    const hadFocus = this.root.contains(document.activeElement);
    this.#id = question?.id;
    this.root.hidden = question === null;
    this.root.replaceChildren(...(question === null ? [] : [this.#card(question)]));
    if (hadFocus) {
      this.answers.leave();
    }
  }

  #card(question: QuestionItem): HTMLElement {
    const card = make("div", "question");
    card.setAttribute("role", "alertdialog");
    card.setAttribute("aria-labelledby", "asks");
    card.setAttribute("aria-describedby", "subject what lasting");
    card.tabIndex = -1;
    const above = make("div", "asked");
    above.append(...asked(question));
    card.append(above, this.#buttons(question), make("p", "others"));
    setTimeout(() => {
      card.dataset.calm = "";
    }, CALM_MS);
    return card;
  }

  #buttons({ id, always, more }: QuestionItem): HTMLElement {
    const bar = make("div", "answers");
    const reason = document.createElement("input");
    reason.type = "text";
    reason.placeholder = "Why not?";
    reason.setAttribute("aria-label", "Reason of a rejection");
    const answer = (decision: Decision) => {
      this.#whenCalm(() => {
        this.answers.answer(id, decision, decision === "reject" ? reason.value.trim() : "");
      });
    };
    const button = (decision: Decision) => makeButton(DECISIONS[decision], () => {
      answer(decision);
    });
    reason.addEventListener("keydown", (event) => {
      if (event.key === "Enter" && !event.isComposing) {
        event.preventDefault();
        answer("reject");
      }
    });
    bar.append(button("once"));
    if (always.length > 0) {
      bar.append(button("always"));
    }
    if (more !== "") {
      bar.append(makeButton(more, () => {
        this.answers.showMore(id);
      }));
    }
    const rejection = make("span", "rejection");
    rejection.append(button("reject"), reason);
    bar.append(rejection);
    return bar;
  }

  #whenCalm(action: () => void): void {
    if (this.root.querySelector(".question[data-calm]") !== null) {
      action();
    }
  }
}

/** The question for a screen reader, which hears it while the focus is elsewhere. */
export function questionWords({ title, subject, lines, isWhole }: QuestionItem): string {
  const keys = navigator.userAgent.includes("Mac") ? "Command+Option+Enter" : "Control+Alt+Enter";
  const what = subject === "" ? `${lines.join(" ")}${isWhole ? "" : "…"}` : subject;
  return `Tiro asks: ${title}: ${what}. ${keys} leads to the question.`;
}

/** What stands above the buttons. */
function asked({ title, subject, lines, isWhole, isDiff, always }: QuestionItem): HTMLElement[] {
  const parts = [withId("asks", make("h2", "", title))];
  if (subject !== "") {
    parts.push(withId("subject", make("p", "subject", subject)));
  }
  const what = withId("what", make("pre", isDiff ? "diff" : ""));
  what.tabIndex = 0;
  what.append(...lines.map((line) => (isDiff ? makeDiffLine(line) : make("div", "", line === "" ? "\n" : line))), ...(isWhole ? [] : ["…"]));
  parts.push(what);
  if (always.length > 0) {
    parts.push(withId("lasting", make("p", "lasting", lastingSentence(always))));
  }
  return parts;
}

function withId(id: string, element: HTMLElement): HTMLElement {
  element.id = id;
  return element;
}
