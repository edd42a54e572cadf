// @vitest-environment happy-dom
import { beforeEach, expect, test, vi } from "vitest";

import { PromptHistory } from "../../media/promptHistory";
import { Transcript } from "../../media/transcript";
import type { UserItem } from "../../src/viewMessages";

let root: HTMLElement;
const finish = vi.fn();

beforeEach(() => {
  root = document.createElement("div");
  document.body.replaceChildren(root);
});

test("an item that is put again changes in its place", () => {
  const transcript = new Transcript(root, { runCommand: () => undefined, showChange: vi.fn(), code: { finish }, frames: { add: vi.fn() } });
  const tool = { kind: "tool", id: "1", name: "grep", summary: "x", diff: "", output: "" } as const;
  transcript.put({ ...tool, status: "running" }, true);
  transcript.put({ kind: "user", id: "2", text: "next", attachments: ["a.py:1"] }, true);
  transcript.put({ ...tool, status: "failed", output: "no such file" }, true);
  expect(root.children).toHaveLength(2);
  expect(root.querySelector(".tool summary")?.textContent).toBe("grep x failed");
  expect(root.querySelector(".tool pre")?.textContent).toBe("no such file");
  transcript.remove("2");
  expect(root.children).toHaveLength(1);
});

test("a change of a file stands in its line as a diff, and its button opens the whole", () => {
  const showChange = vi.fn();
  const transcript = new Transcript(root, { runCommand: vi.fn(), showChange, code: { finish }, frames: { add: vi.fn() } });
  const tool = { kind: "tool", id: "1", name: "edit_file", summary: "a.py", status: "done", diff: "@@\n-a\n+b", output: "Edited" } as const;
  transcript.put(tool, true);
  transcript.put({ ...tool, diff: "" , id: "2" }, true);
  expect([...root.querySelectorAll(".diff .removed, .diff .added")].map(({ textContent }) => textContent)).toEqual(["-a", "+b"]);
  const buttons = [...root.querySelectorAll("button")];
  expect(buttons.map(({ textContent }) => textContent)).toEqual(["Show Diff"]);
  buttons[0]?.click();
  expect(showChange).toHaveBeenCalledWith("1");
});

test("thinking is folded, an error is an alert, and its buttons run their command", () => {
  const run = vi.fn();
  const transcript = new Transcript(root, { runCommand: run, showChange: vi.fn(), code: { finish }, frames: { add: vi.fn() } });
  transcript.put({ kind: "thinking", id: "1", text: "hm", isStreaming: true }, true);
  expect(root.querySelector("details")?.hasAttribute("open")).toBe(false);
  transcript.put({
    kind: "notice",
    id: "2",
    level: "error",
    text: "It failed",
    actions: [{ label: "Show Log", command: "tiro.showLog" }],
  }, true);
  expect(root.querySelector("[role=alert]")?.textContent).toContain("It failed");
  root.querySelector<HTMLButtonElement>(".notice button")?.click();
  expect(run).toHaveBeenCalledWith("tiro.showLog");
});

test("a screen reader hears who speaks", () => {
  const transcript = new Transcript(root, { runCommand: () => undefined, showChange: vi.fn(), code: { finish }, frames: { add: vi.fn() } });
  transcript.put({ kind: "user", id: "1", text: "hi", attachments: [] }, true);
  transcript.put({ kind: "text", id: "2", text: "hello", isStreaming: false, isInterrupted: true }, true);
  const labels = [...root.querySelectorAll("article")].map((one) => one.getAttribute("aria-label"));
  expect(labels).toEqual(["You", "Tiro"]);
  expect(root.querySelector<HTMLElement>(".mark")?.hidden).toBe(false);
});

test("a stored message has a menu that knows its number and whether it is pinned", () => {
  const transcript = new Transcript(root, { runCommand: () => undefined, showChange: vi.fn(), code: { finish }, frames: { add: vi.fn() } });
  transcript.put({ kind: "user", id: "1", text: "hi", attachments: [], seq: 7 }, true);
  transcript.put({ kind: "text", id: "2", text: "hello", isStreaming: false, isInterrupted: false }, true);
  const contexts = () => [...root.querySelectorAll<HTMLElement>(".item")].map((one) => one.dataset.vscodeContext);
  expect(contexts()).toEqual(['{"tiroMessage":"free","seq":7}', undefined]);
  transcript.setSeq("2", 8);
  transcript.setPins([8]);
  expect(contexts()).toEqual(['{"tiroMessage":"free","seq":7}', '{"tiroMessage":"pinned","seq":8}']);
  expect(root.querySelectorAll(".pinned")).toHaveLength(1);
  transcript.put({ kind: "text", id: "3", text: "more", isStreaming: false, isInterrupted: false, seq: 8 }, true);
  transcript.setPins([]);
  expect(root.querySelectorAll(".pinned")).toHaveLength(0);
});

test("earlier prompts come back at the ends of the input, and the draft after them", () => {
  const input = document.createElement("textarea");
  const history = new PromptHistory(input, () => ["one", "two"]);
  const press = (key: string, caret: number) => {
    input.setSelectionRange(caret, caret);
    return history.move(key) ? input.value : undefined;
  };
  input.value = "draft";
  expect(press("ArrowDown", 5)).toBeUndefined();
  expect(press("ArrowUp", 2)).toBeUndefined();
  expect(["ArrowUp", "ArrowUp", "ArrowUp"].map((key) => press(key, 0))).toEqual(["two", "one", undefined]);
  expect(["ArrowDown", "ArrowDown", "ArrowDown"].map((key) => press(key, input.value.length))).toEqual(["two", "draft", undefined]);
  press("ArrowUp", 0);
  history.forget();
  expect(press("ArrowUp", 0)).toBe("two");
});

/** A transcript that shows the end of so many items. */
function long(count: number): Transcript {
  const transcript = new Transcript(root, { runCommand: () => undefined, showChange: vi.fn(), code: { finish }, frames: { add: vi.fn() } });
  transcript.reset(Array.from({ length: count }, (_, index) => user(index + 1)));
  return transcript;
}

function user(number: number): UserItem {
  return { kind: "user", id: `u${number}`, text: `prompt ${number}`, attachments: [] };
}

/** The first and the last prompt on the page, and how many there are. */
function run(): string {
  const texts = [...root.querySelectorAll(".text")].map(({ textContent }) => textContent.replace("prompt ", ""));
  return `${texts[0] ?? ""}-${texts.at(-1) ?? ""} (${texts.length})`;
}

test("however long a conversation is, the page holds a bounded run of it that moves with the reader", () => {
  const transcript = long(400);
  expect(run()).toBe("361-400 (40)");
  for (let pages = 0; pages < 11; pages += 1) {
    transcript.growUp();
  }
  expect([run(), transcript.hasAbove, transcript.hasBelow]).toEqual(["141-300 (160)", true, true]);
  transcript.prepend([user(-1), user(0)]);
  expect([run(), transcript.oldestId]).toEqual(["141-300 (160)", "u-1"]);
  transcript.growDown();
  expect(run()).toBe("161-320 (160)");
  transcript.toEnd();
  expect([run(), transcript.hasBelow, transcript.prompts().length]).toEqual(["361-400 (40)", false, 402]);
});

test("of long items fewer come at once, but one", () => {
  const transcript = new Transcript(root, { runCommand: () => undefined, showChange: vi.fn(), code: { finish }, frames: { add: vi.fn() } });
  const items = Array.from({ length: 60 }, (_, index) => ({ ...user(index + 1), text: `prompt ${index + 1} `.padEnd(index < 10 ? 50_000 : 10_000) }));
  transcript.reset(items);
  expect(run().replaceAll(" ", "")).toBe("58-60(3)");
  transcript.growUp();
  expect(run().replaceAll(" ", "")).toBe("55-60(6)");
  transcript.goTo("u5");
  const before = root.children.length;
  transcript.growUp();
  expect(root.children.length).toBe(before + 1);
});

test("whoever is led to an item sees it with what is around it", () => {
  const transcript = long(400);
  expect(transcript.goTo("u100")?.textContent).toContain("prompt 100");
  expect([run(), transcript.hasAbove, transcript.hasBelow]).toEqual(["80-119 (40)", true, true]);
  transcript.growDown();
  expect([transcript.goTo("u130")?.textContent, run()]).toEqual(["Youprompt 130", "80-139 (60)"]);
  expect(transcript.goTo("u400")).toBeDefined();
  expect([run(), transcript.hasBelow]).toEqual(["380-400 (21)", false]);
  expect(transcript.goTo("nowhere")).toBeUndefined();
});

test("a reader at the end is followed by a run that stays bounded, any other one keeps what is seen", () => {
  const transcript = long(20);
  for (let number = 21; number <= 300; number += 1) {
    transcript.put(user(number), true);
  }
  expect(run()).toBe("141-300 (160)");
  transcript.put(user(301), false);
  expect([run(), transcript.hasBelow]).toEqual(["141-300 (160)", true]);
  transcript.growDown();
  expect(run()).toBe("142-301 (160)");
});

test("what changes while it is not on the page is there when it comes back, and so is what was unfolded", () => {
  const transcript = long(200);
  transcript.put({ kind: "tool", id: "t", name: "grep", summary: "x", status: "running", diff: "", output: "" }, true);
  root.querySelector("details")?.setAttribute("open", "");
  root.querySelector("details")?.dispatchEvent(new Event("toggle"));
  for (let pages = 0; pages < 10; pages += 1) {
    transcript.growUp();
  }
  expect(root.querySelector("details")).toBeNull();
  transcript.append("t", "found");
  transcript.setSeq("u200", 7);
  transcript.remove("u199");
  transcript.toEnd();
  expect(root.querySelector("details")?.open).toBe(true);
  expect(root.querySelector("details .plain")?.textContent).toBe("found");
  expect(root.querySelector<HTMLElement>("[data-seq]")?.dataset.seq).toBe("7");
  expect(root.textContent).not.toContain("prompt 199");
});
