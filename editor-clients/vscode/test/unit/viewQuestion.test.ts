// @vitest-environment happy-dom
import { afterEach, beforeEach, expect, test, vi } from "vitest";

import { QuestionCard, questionWords } from "../../media/question";
import type { QuestionItem } from "../../src/viewMessages";

const ITEM: QuestionItem = {
  id: "q1",
  title: "build wants to run run_command [execute]",
  subject: "",
  lines: ["make <all>"],
  isWhole: true,
  isDiff: false,
  more: "",
  always: ["run exactly “make” in /w", "read /a"],
};

let root: HTMLElement;
const answers = { answer: vi.fn(), showMore: vi.fn(), leave: vi.fn() };
let card: QuestionCard;

beforeEach(() => {
  vi.useFakeTimers({ toFake: ["setTimeout"] });
  vi.clearAllMocks();
  root = document.createElement("section");
  document.body.replaceChildren(root);
  card = new QuestionCard(root, answers);
});

afterEach(() => {
  vi.useRealTimers();
});

function show(item: QuestionItem, others = 0): void {
  card.show(item, others);
  vi.advanceTimersByTime(1_000);
}

function button(label: string): HTMLButtonElement {
  const found = [...root.querySelectorAll("button")].find(({ textContent }) => textContent === label);
  if (found === undefined) {
    throw new Error(`There is no button ${label}: ${root.textContent}`);
  }
  return found;
}

test("a question says what would run and what the lasting answer adds, as text", () => {
  show(ITEM);
  expect(root.querySelector("pre")?.textContent).toBe("make <all>");
  expect(root.querySelector(".lasting")?.textContent).toBe("“Allow for This Session”: from now on, until this session ends, Tiro may do this without asking: run exactly “make” in /w; read /a");
  expect([...root.querySelectorAll("button")].map(({ textContent }) => textContent)).toEqual(["Allow Once", "Allow for This Session", "Reject"]);
});

test("where no answer lasts none is offered", () => {
  show({ ...ITEM, always: [] });
  expect([...root.querySelectorAll("button")].map(({ textContent }) => textContent)).toEqual(["Allow Once", "Reject"]);
});

test.each([
  ["Allow Once", ["q1", "once", ""]],
  ["Allow for This Session", ["q1", "always", ""]],
  ["Reject", ["q1", "reject", "too wide"]],
])("%s is answered, a rejection with its reason", (label, sent) => {
  show(ITEM);
  const reason = root.querySelector("input");
  if (reason !== null) {
    reason.value = " too wide ";
  }
  button(label).click();
  expect(answers.answer.mock.calls).toEqual([sent]);
});

test("Enter in the reason rejects", () => {
  show(ITEM);
  const reason = root.querySelector("input");
  reason?.dispatchEvent(new KeyboardEvent("keydown", { key: "Enter", cancelable: true }));
  expect(answers.answer).toHaveBeenCalledWith("q1", "reject", "");
});

test("a click just after it came, or after the one before went, is not for it", () => {
  card.show(ITEM, 0);
  button("Allow Once").click();
  vi.advanceTimersByTime(1_000);
  card.show({ ...ITEM, id: "q2" }, 0);
  button("Allow Once").click();
  expect(answers.answer).not.toHaveBeenCalled();
});

test("it is a dialog with a name that takes the focus only on demand, and gives it back", () => {
  const prompt = document.createElement("input");
  document.body.append(prompt);
  prompt.focus();
  show(ITEM);
  expect(document.activeElement).toBe(prompt);
  card.focus();
  const dialog = document.activeElement;
  expect(dialog?.getAttribute("role")).toBe("alertdialog");
  const name = dialog?.getAttribute("aria-labelledby") ?? "";
  expect(document.getElementById(name)?.textContent).toBe(ITEM.title);
  card.show(null, 0);
  expect([answers.leave.mock.calls.length, root.hidden, root.children.length]).toEqual([1, true, 0]);
});

test("what is typed stays while the same question waits, and others are counted", () => {
  show(ITEM);
  const reason = root.querySelector("input");
  show(ITEM, 2);
  expect(root.querySelector("input")).toBe(reason);
  expect(root.querySelector(".others")?.textContent).toBe("2 more questions wait");
});

test("a diff shows what is added and removed, and opens whole", () => {
  show({ ...ITEM, subject: "+1 −1 lines in a.py", lines: ["@@ -1,1 +1,1 @@", "-one", "+ONE"], isDiff: true, more: "Show Diff" });
  expect([".place", ".removed", ".added"].map((one) => root.querySelector(one)?.textContent)).toEqual(["@@ -1,1 +1,1 @@", "-one", "+ONE"]);
  button("Show Diff").click();
  expect(answers.showMore).toHaveBeenCalledWith("q1");
});

test.each([
  [true, "Show Diff", "@@ -1,1 +1,1 @@-one"],
  [false, "Show Diff", "@@ -1,1 +1,1 @@-one…"],
  [false, "Show All", "@@ -1,1 +1,1 @@-one…"],
])("what is not whole (%s) ends with an ellipsis, whatever opens it (%s)", (isWhole, more, shown) => {
  show({ ...ITEM, lines: ["@@ -1,1 +1,1 @@", "-one"], isDiff: more === "Show Diff", isWhole, more });
  expect(root.querySelector("pre")?.textContent).toBe(shown);
});

test("the page can be told that clicks count", () => {
  card.show(ITEM, 0);
  expect(root.querySelector(".question[data-calm]")).toBeNull();
  vi.advanceTimersByTime(1_000);
  expect(root.querySelector(".question[data-calm]")).not.toBeNull();
});

test("a screen reader hears what is asked, and the key that leads there", () => {
  expect(questionWords(ITEM)).toBe("Tiro asks: build wants to run run_command [execute]: make <all>. Control+Alt+Enter leads to the question.");
});
