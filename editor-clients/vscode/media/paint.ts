/** The element of each kind of item, changed only where the item changes. */

import type {
  Item,
  NoticeItem,
  TextItem,
  ThinkingItem,
  ToolItem,
  ToolStatus,
  UserItem,
} from "../src/viewMessages";
import type { CodeBlocks } from "./codeBlock";
import { make, makeButton, makeDiffLine } from "./dom";
import type { Frames } from "./frames";
import { MarkdownStream } from "./markdown";

/** An item on the page. */
export interface Painted {
  element: HTMLElement;
  /** Show the item as it is now. */
  update(item: Item): void;
  /** More text of it. */
  append(delta: string): void;
}

/** What items need of the page. */
export interface Tools {
  runCommand: (command: string) => void;
  /** Open the whole change of a file in an editor. */
  showChange: (id: string) => void;
  code: Pick<CodeBlocks, "finish">;
  frames: Pick<Frames, "add">;
}

const STATUS_WORDS: Readonly<Record<ToolStatus, string>> = {
  proposed: "waiting",
  running: "running",
  done: "done",
  rejected: "rejected",
  failed: "failed",
  cancelled: "cancelled",
};

/** Make the element of an item. */
export function paint(item: Item, tools: Tools): Painted {
  switch (item.kind) {
    case "user":
      return paintUser(item);
    case "text":
      return paintText(item, tools);
    case "thinking":
      return paintThinking(item);
    case "tool":
      return paintTool(item, tools);
    case "notice":
      return paintNotice(item, tools.runCommand);
  }
}

/** The line of a tool use, in words. */
export function toolWords({ name, summary, status }: ToolItem): string {
  return `${name} ${summary}, ${STATUS_WORDS[status]}`;
}

function paintUser(item: UserItem): Painted {
  const element = article("user", "You");
  element.append(make("div", "text", item.text));
  if (item.attachments.length > 0) {
    const list = make("ul", "attached");
    list.setAttribute("aria-label", "Attachments");
    list.append(...item.attachments.map((label) => make("li", "", label)));
    element.append(list);
  }
  const mark = make("p", "mark", item.mark ?? "");
  if (item.mark !== undefined) {
    element.append(mark);
  }
  const update = (now: Item) => {
    mark.textContent = now.kind === "user" ? (now.mark ?? "") : "";
  };
  return { element, update, append: () => undefined };
}

function paintText(item: TextItem, { code, frames }: Tools): Painted {
  const element = article("text", "Tiro");
  const body = make("div", "markdown");
  const mark = make("p", "mark", "Interrupted");
  element.append(body, mark);
  const stream = new MarkdownStream(body, frames, (block, language) => {
    code.finish(block, language);
  });
  stream.push(item.text);
  const update = (now: Item) => {
    if (now.kind === "text") {
      element.dataset.done = String(!now.isStreaming);
      mark.hidden = !now.isInterrupted;
      if (!now.isStreaming) {
        stream.end();
      }
    }
  };
  update(item);
  return {
    element,
    update,
    append: (delta) => {
      stream.push(delta);
    },
  };
}

function paintThinking(item: ThinkingItem): Painted {
  const element = make("details", "item thinking");
  const summary = make("summary", "");
  const text = document.createTextNode(item.text);
  const body = make("div", "plain");
  body.append(text);
  element.append(summary, body);
  const update = (now: Item) => {
    summary.textContent = now.kind === "thinking" && now.isStreaming ? "Thinking…" : "Thought";
  };
  update(item);
  return {
    element,
    update,
    append: (delta) => {
      text.appendData(delta);
    },
  };
}

function paintTool(item: ToolItem, { showChange }: Tools): Painted {
  const element = make("details", "item tool");
  const summary = make("summary", "");
  const name = make("span", "name", item.name);
  const subject = make("span", "subject", item.summary);
  const status = make("span", "status");
  summary.append(name, " ", subject, " ", status);
  const text = document.createTextNode("");
  const body = make("pre", "plain");
  body.tabIndex = 0;
  body.append(text);
  const change = make("div", "change");
  element.append(summary, change, body);
  let diff = "";
  const update = (now: Item) => {
    if (now.kind === "tool") {
      if (now.diff !== diff) {
        diff = now.diff;
        change.replaceChildren(...changeParts(now, showChange));
      }
      element.dataset.status = now.status;
      element.dataset.empty = String(now.output === "");
      status.textContent = STATUS_WORDS[now.status];
      text.data = now.output;
    }
  };
  update(item);
  return {
    element,
    update,
    append: (delta) => {
      element.dataset.empty = "false";
      text.appendData(delta);
    },
  };
}

function changeParts({ id, diff }: ToolItem, showChange: (id: string) => void): HTMLElement[] {
  const lines = make("pre", "plain diff");
  lines.tabIndex = 0;
  lines.append(...diff.split("\n").map(makeDiffLine));
  return [lines, makeButton("Show Diff", () => {
    showChange(id);
  })];
}

function paintNotice(item: NoticeItem, runCommand: (command: string) => void): Painted {
  const element = make("div", `item notice ${item.level}`);
  element.setAttribute("role", item.level === "error" ? "alert" : "note");
  element.append(make("span", "", item.text));
  for (const { label, command } of item.actions) {
    const button = make("button", "", label);
    button.setAttribute("type", "button");
    button.addEventListener("click", () => {
      runCommand(command);
    });
    element.append(button);
  }
  return { element, update: () => undefined, append: () => undefined };
}

function article(kind: string, speaker: string): HTMLElement {
  const element = make("article", `item ${kind}`);
  element.setAttribute("aria-label", speaker);
  element.append(make("h2", "speaker", speaker));
  return element;
}
