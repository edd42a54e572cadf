/**
 * The script of the Tiro view.
 *
 * It paints what the extension sends and keeps only what is the page's own: the draft and whether
 * the reader is at the end. Only a reader at the end is taken along when more arrives.
 */

import type { Chip, FromView, Item, ToView, TranscriptChange, ViewStatus } from "../src/viewMessages";
import { PromptHistory } from "./promptHistory";
import { toolWords, Transcript } from "./transcript";

declare function acquireVsCodeApi(): {
  postMessage(message: FromView): void;
  getState(): { draft: string } | undefined;
  setState(state: { draft: string }): void;
};

/** So near to the end counts as at the end. */
const END_SLACK_PX = 24;
const MAX_ANNOUNCED_CHARACTERS = 1_000;

const vscode = acquireVsCodeApi();
const scroller = byId("transcript");
const earlier = byId("earlier");
const empty = byId("empty");
const follow = byId("follow");
const chips = byId("chips");
const prompt = byId("prompt") as HTMLTextAreaElement;
const send = byId("send") as HTMLButtonElement;
const cancel = byId("cancel");
const live = byId("live");
const items = byId("items");
const transcript = new Transcript(items, (command) => {
  vscode.postMessage({ type: "command", command });
});

const history = new PromptHistory(prompt, () =>
  [...items.querySelectorAll(".item.user .text")].map(({ textContent }) => textContent),
);

let isAtEnd = true;
/** Where the page was when it was last looked at. */
let lastTop = 0;
let state: ViewStatus["state"] = "starting";

window.addEventListener("message", ({ data }: MessageEvent<ToView>) => {
  receive(data);
});

byId("composer").addEventListener("submit", (event) => {
  event.preventDefault();
  ask();
});
prompt.addEventListener("keydown", (event) => {
  if (event.key === "Enter" && !event.shiftKey && !event.isComposing) {
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
follow.addEventListener("click", () => {
  goToEnd();
  prompt.focus();
});
scroller.addEventListener("scroll", readPosition);
const sizes = new ResizeObserver(keepAtEnd);
sizes.observe(scroller);
sizes.observe(items);
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
      showChips(message.chips);
      break;
    case "draft":
      giveBack(message.text);
      break;
    case "focus":
      prompt.focus();
      break;
    default:
      paint(message);
  }
  empty.hidden = !transcript.isEmpty;
  keepAtEnd();
}

function paint(change: TranscriptChange): void {
  switch (change.type) {
    case "reset":
      transcript.reset(change.items);
      earlier.hidden = !change.hasEarlier;
      goToEnd();
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

function ask(): void {
  const text = prompt.value;
  if (text.trim() === "") {
    return;
  }
  prompt.value = "";
  history.forget();
  draftChanged();
  goToEnd();
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

/** Only the reader moves up; text that grows below does not. */
function readPosition(): void {
  const below = scroller.scrollHeight - scroller.scrollTop - scroller.clientHeight;
  if (below <= END_SLACK_PX) {
    isAtEnd = true;
  } else if (scroller.scrollTop < lastTop) {
    isAtEnd = false;
  }
  lastTop = scroller.scrollTop;
  follow.hidden = isAtEnd;
}

/** The position is read first: the reader may have moved since the last event. */
function keepAtEnd(): void {
  readPosition();
  if (isAtEnd) {
    goToEnd();
  }
}

function goToEnd(): void {
  isAtEnd = true;
  scroller.scrollTop = scroller.scrollHeight;
  lastTop = scroller.scrollTop;
  follow.hidden = true;
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

function showChips(shown: readonly Chip[]): void {
  chips.replaceChildren(
    ...shown.map((chip) => {
      const item = document.createElement("li");
      const button = document.createElement("button");
      button.type = "button";
      button.className = "chip";
      button.textContent = chip.label;
      if (chip.isSelection) {
        button.setAttribute("aria-pressed", String(chip.isOn));
        button.title = chip.isOn ? "The selection goes along" : "The selection does not go along";
      } else {
        button.title = "Remove";
        button.setAttribute("aria-label", `Remove attachment ${chip.label}`);
        button.classList.add("removable");
      }
      button.addEventListener("click", () => {
        vscode.postMessage(
          chip.isSelection ? { type: "toggleSelection" } : { type: "removeChip", id: chip.id },
        );
      });
      item.append(button);
      return item;
    }),
  );
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

function draftChanged(): void {
  vscode.setState({ draft: prompt.value });
  send.disabled = prompt.value.trim() === "";
  fitPrompt();
}

function fitPrompt(): void {
  prompt.style.height = "auto";
  prompt.style.height = `${prompt.scrollHeight + 2}px`;
}

function byId(id: string): HTMLElement {
  const element = document.getElementById(id);
  if (element === null) {
    throw new Error(`The page has no element ${id}`);
  }
  return element;
}
