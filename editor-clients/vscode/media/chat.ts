/**
 * The script of the Tiro view.
 *
 * It paints what the extension sends and keeps only what is the page's own: the draft and whether
 * the reader is at the end. Only a reader at the end is taken along when more arrives.
 */

import type { FromView, Item, ToView, TranscriptChange, ViewStatus } from "../src/viewMessages";
import { showChips } from "./chips";
import { CodeBlocks } from "./codeBlock";
import { byId } from "./dom";
import { Follow } from "./follow";
import { PromptHistory } from "./promptHistory";
import { QuestionCard, questionWords } from "./question";
import { toolWords, Transcript } from "./transcript";

declare function acquireVsCodeApi(): {
  postMessage(message: FromView): void;
  getState(): { draft: string } | undefined;
  setState(state: { draft: string }): void;
};

const MAX_ANNOUNCED_CHARACTERS = 1_000;

const vscode = acquireVsCodeApi();
const scroller = byId("transcript");
const earlier = byId("earlier");
const empty = byId("empty");
const prompt = byId("prompt") as HTMLTextAreaElement;
const send = byId("send") as HTMLButtonElement;
const cancel = byId("cancel");
const live = byId("live");
const urgent = byId("urgent");
const items = byId("items");
const code = new CodeBlocks((action, text) => {
  vscode.postMessage({ type: "code", action, text });
  if (action === "copy") {
    say("Copied");
  }
});
const transcript = new Transcript(
  items,
  (command) => {
    vscode.postMessage({ type: "command", command });
  },
  code,
);

const history = new PromptHistory(prompt, () =>
  [...items.querySelectorAll(".item.user .text")].map(({ textContent }) => textContent),
);

const follow = new Follow(scroller, items, byId("follow"));
const question = new QuestionCard(byId("question"), {
  answer: (id, decision, message) => {
    vscode.postMessage({ type: "answer", id, decision, message });
  },
  showMore: (id) => {
    vscode.postMessage({ type: "showQuestion", id });
  },
  leave: () => {
    prompt.focus();
  },
});

let state: ViewStatus["state"] = "starting";

window.addEventListener("message", ({ data }: MessageEvent<ToView>) => {
  receive(data);
});

byId("composer").addEventListener("submit", (event) => {
  event.preventDefault();
  ask();
});
prompt.addEventListener("keydown", (event) => {
  if (event.key === "Enter" && isPlain(event)) {
    event.preventDefault();
    ask();
  } else if (history.move(event.key)) {
    event.preventDefault();
    draftChanged();
  }
});
prompt.addEventListener("input", draftChanged);
document.addEventListener("keydown", (event) => {
  if (event.key === "Escape" && state === "answering") {
    event.preventDefault();
    vscode.postMessage({ type: "cancel" });
  }
});
cancel.addEventListener("click", () => {
  vscode.postMessage({ type: "cancel" });
  prompt.focus();
});
earlier.addEventListener("click", () => {
  vscode.postMessage({ type: "earlier" });
});
byId("follow").addEventListener("click", () => {
  follow.goToEnd();
  prompt.focus();
});
for (const [id, command] of [
  ["attach", "tiro.attach"],
  ["agent", "tiro.selectAgent"],
  ["model", "tiro.selectModel"],
  ["tokens", "tiro.contextSize"],
] as const) {
  byId(id).addEventListener("click", () => {
    vscode.postMessage({ type: "command", command });
  });
}

prompt.value = vscode.getState()?.draft ?? "";
fitPrompt();
vscode.postMessage({ type: "ready" });

function receive(message: ToView): void {
  switch (message.type) {
    case "status":
      showStatus(message.status);
      break;
    case "chips":
      showChips(byId("chips"), message.chips, (chosen) => {
        vscode.postMessage(chosen);
      });
      break;
    case "draft":
      giveBack(message.text);
      break;
    case "focus":
      prompt.focus();
      break;
    case "question":
      question.show(message.question, message.others);
      warn(message.question === null ? "" : questionWords(message.question));
      break;
    case "focusQuestion":
      question.focus();
      break;
    default:
      paint(message);
  }
  empty.hidden = !transcript.isEmpty;
  follow.keep();
}

function paint(change: TranscriptChange): void {
  switch (change.type) {
    case "reset":
      transcript.reset(change.items);
      earlier.hidden = !change.hasEarlier;
      follow.goToEnd();
      break;
    case "prepend":
      prepend(change.items, change.hasEarlier);
      break;
    case "put":
      transcript.put(change.item);
      announceItem(change.item);
      break;
    case "append":
      transcript.append(change.id, change.delta);
      break;
    case "seq":
      transcript.setSeq(change.id, change.seq);
      break;
    case "remove":
      transcript.remove(change.id);
      break;
  }
}

/** With a modifier a key means something else, to the page or to VS Code. */
function isPlain({ shiftKey, ctrlKey, altKey, metaKey, isComposing }: KeyboardEvent): boolean {
  return !(shiftKey || ctrlKey || altKey || metaKey || isComposing);
}

function ask(): void {
  const text = prompt.value;
  if (text.trim() === "") {
    return;
  }
  prompt.value = "";
  history.forget();
  draftChanged();
  follow.goToEnd();
  vscode.postMessage(state === "answering" ? { type: "steer", text } : { type: "ask", prompt: text });
}

/** Older items go above; what the reader looks at stays where it is. */
function prepend(older: readonly Item[], hasEarlier: boolean): void {
  const anchor = items.firstElementChild;
  const before = anchor?.getBoundingClientRect().top ?? 0;
  transcript.prepend(older);
  earlier.hidden = !hasEarlier;
  scroller.scrollTop += (anchor?.getBoundingClientRect().top ?? 0) - before;
}

function showStatus(status: ViewStatus): void {
  const wasAnswering = state === "answering";
  state = status.state;
  const isAnswering = state === "answering";
  cancel.hidden = !isAnswering;
  send.hidden = isAnswering;
  send.disabled = prompt.value.trim() === "";
  prompt.placeholder = isAnswering ? "Steer the answer" : "Ask Tiro";
  transcript.setPins(status.pins);
  label(byId("agent"), status.agent, `Agent: ${status.agent}`);
  label(byId("model"), status.model.split("/").at(-1) ?? "", `Model: ${status.model}`);
  label(byId("tokens"), status.tokens, `Next request: ${status.tokens}`);
  const activity = byId("activity");
  activity.textContent = status.activity || activityOf(state);
  activity.title = activity.textContent;
  document.body.dataset.state = state;
  if (isAnswering && !wasAnswering) {
    say("Tiro is answering");
  }
}

function activityOf(now: ViewStatus["state"]): string {
  const words = { starting: "Starting…", ready: "", answering: "Answering…", stopped: "Stopped" };
  return words[now];
}

function label(button: HTMLElement, text: string, meaning: string): void {
  button.textContent = text;
  button.hidden = text === "";
  button.title = meaning;
  button.setAttribute("aria-label", meaning);
}

/** A prompt that was not taken comes back, before whatever was typed since. */
function giveBack(text: string): void {
  prompt.value = prompt.value === "" ? text : `${text}\n${prompt.value}`;
  draftChanged();
}

function announceItem(item: Item): void {
  if (item.kind === "text" && !item.isStreaming) {
    const cut = item.text.slice(0, MAX_ANNOUNCED_CHARACTERS);
    say(`Tiro: ${cut}${cut.length < item.text.length ? "…" : ""}`);
  } else if (item.kind === "tool") {
    say(toolWords(item));
  } else if (item.kind === "notice" && item.level === "info") {
    say(item.text);
  }
}

function say(text: string): void {
  live.textContent = text;
}

/** Said at once; the same again is no news. */
function warn(text: string): void {
  if (urgent.textContent !== text) {
    urgent.textContent = text;
  }
}

function draftChanged(): void {
  vscode.setState({ draft: prompt.value });
  send.disabled = prompt.value.trim() === "";
  fitPrompt();
}

function fitPrompt(): void {
  prompt.style.height = "auto";
  prompt.style.height = `${prompt.scrollHeight + 2}px`;
}
