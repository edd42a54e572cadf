/**
 * The script of the Tiro view.
 *
 * It paints what the extension sends and keeps only what is the page's own: the draft and whether
 * the reader is at the end. Only a reader at the end is taken along when more arrives.
 */

import type { FromView, ToView, TranscriptChange, ViewStatus } from "../src/viewMessages";
import { announceItem, say, warn } from "./announce";
import { showChips } from "./chips";
import { CodeBlocks } from "./codeBlock";
import { byId, label } from "./dom";
import { acceptDrops } from "./drop";
import { Follow } from "./follow";
import { Frames } from "./frames";
import { Mentions } from "./mentions";
import { PromptHistory } from "./promptHistory";
import { QuestionCard, questionWords } from "./question";
import { Transcript } from "./transcript";

declare function acquireVsCodeApi(): {
  postMessage(message: FromView): void;
  getState(): { draft: string } | undefined;
  setState(state: { draft: string }): void;
};

const vscode = acquireVsCodeApi();
const scroller = byId("transcript");
const earlier = byId("earlier");
const empty = byId("empty");
const prompt = byId("prompt") as HTMLTextAreaElement;
const send = byId("send") as HTMLButtonElement;
const cancel = byId("cancel");
const items = byId("items");
const code = new CodeBlocks((action, text) => {
  post({ type: "code", action, text });
});
const transcript = new Transcript(items, {
  code,
  frames: new Frames(),
  showChange: (id) => {
    post({ type: "showChange", id });
  },
  runCommand: (command) => {
    post({ type: "command", command });
  },
});
const history = new PromptHistory(prompt, () => transcript.prompts());
const follow = new Follow({
  scroller,
  content: items,
  jump: byId("follow"),
  isWhole: () => !transcript.hasBelow,
  paintEnd: () => {
    transcript.toEnd();
  },
  near: grow,
});
const question = new QuestionCard(byId("question"), {
  answer: (id, decision, message) => {
    post({ type: "answer", id, decision, message });
  },
  showMore: (id) => {
    post({ type: "showQuestion", id });
  },
  leave: () => {
    prompt.focus();
  },
});

let state: ViewStatus["state"] = "starting";
let isAskedForEarlier = false;

window.addEventListener("message", ({ data }: MessageEvent<ToView>) => {
  receive(data);
});

byId("composer").addEventListener("submit", (event) => {
  event.preventDefault();
  ask();
});
const mentions = new Mentions(prompt, byId("mentions"), post, draftChanged);
prompt.addEventListener("keydown", (event) => {
  if (isPlain(event) && mentions.press(event.key)) {
    event.preventDefault();
    event.stopPropagation();
  } else if (event.key === "Enter" && isPlain(event)) {
    event.preventDefault();
    ask();
  } else if (history.move(event.key)) {
    event.preventDefault();
    draftChanged();
  }
});
prompt.addEventListener("input", () => {
  draftChanged();
  mentions.look();
});
acceptDrops((uris) => {
  post({ type: "drop", uris });
});
document.addEventListener("keydown", (event) => {
  if (event.key === "Escape" && state === "answering") {
    event.preventDefault();
    post({ type: "cancel" });
  }
});
cancel.addEventListener("click", () => {
  post({ type: "cancel" });
  prompt.focus();
});
earlier.addEventListener("click", askForEarlier);
byId("follow").addEventListener("click", () => {
  follow.goToEnd();
  prompt.focus();
});
for (const [id, command] of [
  ["attach", "tiro.attach"],
  ["agent", "tiro.selectAgent"],
  ["model", "tiro.selectModel"],
  ["tokens", "tiro.contextSize"],
  ["trust", "workbench.trust.manage"],
] as const) {
  byId(id).addEventListener("click", () => {
    post({ type: "command", command });
  });
}

giveBack(vscode.getState()?.draft ?? ""); // somebody may have typed before this script came
post({ type: "ready" });

function post(message: FromView): void {
  vscode.postMessage(message);
}

function receive(message: ToView): void {
  switch (message.type) {
    case "status":
      showStatus(message.status);
      break;
    case "chips":
      showChips(byId("chips"), message.chips, post);
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
    case "say":
      say(message.text);
      break;
    case "mentions":
      mentions.show(message.query, message.mentions);
      break;
    case "focusQuestion":
      question.focus();
      break;
    default:
      paint(message);
  }
  showEmpty();
  follow.keep();
}

/** Lead to a message, also for whoever listens to the page. */
function goTo(id: string): void {
  const element = transcript.goTo(id);
  if (element !== undefined) {
    element.tabIndex = -1;
    element.focus({ preventScroll: true });
    follow.goTo(element);
  }
}

function paint(change: TranscriptChange): void {
  switch (change.type) {
    case "reset":
      isAskedForEarlier = false;
      transcript.reset(change.items);
      earlier.hidden = !change.hasEarlier;
      follow.goToEnd();
      break;
    case "prepend":
      isAskedForEarlier = false;
      transcript.prepend(change.items);
      earlier.hidden = !change.hasEarlier;
      follow.look();
      break;
    case "put":
      transcript.put(change.item, follow.isAtEnd);
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
    case "goTo":
      goTo(change.id);
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
  post(state === "answering" ? { type: "steer", text } : { type: "ask", prompt: text });
}

/** The reader is near to an end of what is painted: more of it is painted, or asked for. */
function grow(edge: "top" | "bottom"): void {
  if (edge === "bottom" && transcript.hasBelow) {
    follow.hold(() => {
      transcript.growDown();
    });
  } else if (edge === "top" && transcript.hasAbove) {
    follow.hold(() => {
      transcript.growUp();
    });
  } else if (edge === "top" && !earlier.hidden && !isAskedForEarlier) {
    askForEarlier();
  }
}

function askForEarlier(): void {
  isAskedForEarlier = true;
  post({ type: "earlier", before: transcript.oldestId });
}

function showStatus(status: ViewStatus): void {
  const wasAnswering = state === "answering";
  state = status.state;
  const isAnswering = state === "answering";
  cancel.hidden = !isAnswering;
  send.hidden = isAnswering;
  send.disabled = prompt.value.trim() === "";
  prompt.placeholder = isAnswering ? "Steer the answer" : "Ask Tiro";
  byId("restricted").hidden = !status.isRestricted;
  transcript.setPins(status.pins);
  label(byId("agent"), status.agent, `Agent: ${status.agent}`);
  label(byId("model"), status.model.split("/").at(-1) ?? "", `Model: ${status.model}`);
  label(byId("tokens"), status.tokens, status.tokensSentence);
  const activity = byId("activity");
  activity.textContent = status.activity || activityOf(state);
  activity.title = activity.textContent;
  document.body.dataset.state = state;
  if (isAnswering && !wasAnswering) {
    say("Tiro is answering");
  }
}

/** Before a session was read nobody knows that there is nothing. */
function showEmpty(): void {
  empty.hidden = !transcript.isEmpty || state === "starting";
}

function activityOf(now: ViewStatus["state"]): string {
  const words = { starting: "Starting…", ready: "", answering: "Answering…", stopped: "Stopped" };
  return words[now];
}

/** A prompt that was not taken comes back, before whatever was typed since. */
function giveBack(text: string): void {
  prompt.value = [text, prompt.value].filter((part) => part !== "").join("\n");
  draftChanged();
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
