// @vitest-environment happy-dom
import { beforeEach, expect, test, vi } from "vitest";

import { MarkdownStream } from "../../media/markdown";
import { PromptHistory } from "../../media/promptHistory";
import { Transcript } from "../../media/transcript";
import type { UserItem } from "../../src/viewMessages";

let root: HTMLElement;
const finish = vi.fn();

beforeEach(() => {
  root = document.createElement("div");
  document.body.replaceChildren(root);
});

/** Paint a text that arrives in pieces of some size. */
function paint(text: string, size: number): string {
  root.replaceChildren();
  const stream = new MarkdownStream(root);
  for (let start = 0; start < text.length; start += size) {
    stream.push(text.slice(start, start + size));
  }
  stream.end();
  return root.innerHTML;
}

function check(text: string, html: string): void {
  for (const size of [1, 3, 7, text.length]) {
    expect(paint(text, size), `in pieces of ${size}`).toBe(html);
  }
}

test("paragraphs, with their line breaks", () => {
  check("one\ntwo\n\nthree", "<p>one\ntwo</p><p>three</p>");
});

test("emphasis, code and links to the web", () => {
  check(
    "a **b** *c* _cc_ `d*e*` [f](https://g.org/h)",
    '<p>a <strong>b</strong> <em>c</em> <em>cc</em> <code>d*e*</code> <a href="https://g.org/h">f</a></p>',
  );
});

test("lists and headings", () => {
  check(
    "# One\n- a\n- b\n  - c\n\n3. d\n4. e",
    '<h3>One</h3><ul><li>a</li><li>b</li><li class="nested">c</li></ul><ol start="3"><li>d</li><li>e</li></ol>',
  );
});

test("code keeps every character, markup in it too", () => {
  check(
    "```py\nif a < b:\n\n    # **no**\n```\nafter",
    '<div class="code"><div class="bar"><span class="language">py</span></div><pre tabindex="0" role="group" aria-label="Code, py"><code>if a &lt; b:\n\n    # **no**\n</code></pre></div><p>after</p>',
  );
});

test("a fence that never ends is still shown as code", () => {
  check(
    "~~~\nx",
    '<div class="code"><div class="bar"><span class="language"></span></div><pre tabindex="0" role="group" aria-label="Code"><code>x\n</code></pre></div>',
  );
});

test("markup of the model is text, and a link cannot run anything", () => {
  const evil = '<img src=x onerror=alert(1)> [x](javascript:alert(1)) [y](command:z)';
  paint(evil, 5);
  expect(root.textContent).toBe(evil);
  expect(root.querySelectorAll("img, a, script")).toHaveLength(0);
});

test("arithmetic and snake case stay what they are", () => {
  check("2 * 3 * 4 and __init__ and a*b", "<p>2 * 3 * 4 and __init__ and a*b</p>");
});

test("an unfinished line is shown at once, in the block where it will stand", () => {
  const stream = new MarkdownStream(root);
  stream.push("```\nfirst\nsec");
  expect(root.querySelector("pre")?.textContent).toBe("first\nsec");
  stream.push("ond");
  expect(root.querySelector("pre")?.textContent).toBe("first\nsecond");
});

test("a delta touches only the last line, however long the answer is", async () => {
  const stream = new MarkdownStream(root);
  stream.push("a line of text\n\n".repeat(500));
  const touched = vi.fn();
  const observer = new MutationObserver((records) => {
    touched(records.length);
  });
  observer.observe(root, { childList: true, characterData: true, subtree: true });
  stream.push("more");
  await new Promise((resolve) => setTimeout(resolve, 10));
  observer.disconnect();
  expect(touched.mock.calls.flat().reduce<number>((sum, count) => sum + Number(count), 0)).toBeLessThan(8);
});

test("a long line without a break is not painted again from its start", () => {
  const stream = new MarkdownStream(root);
  stream.push("x".repeat(3_000));
  const text = root.querySelector(".live")?.firstChild;
  stream.push("y");
  expect(root.querySelector(".live")?.firstChild).toBe(text);
  expect(root.textContent.length).toBe(3_001);
});

test("an item that is put again changes in its place", () => {
  const transcript = new Transcript(root, { runCommand: () => undefined, code: { finish } });
  const tool = { kind: "tool", id: "1", name: "grep", summary: "x", output: "" } as const;
  transcript.put({ ...tool, status: "running" }, true);
  transcript.put({ kind: "user", id: "2", text: "next", attachments: ["a.py:1"] }, true);
  transcript.put({ ...tool, status: "failed", output: "no such file" }, true);
  expect(root.children).toHaveLength(2);
  expect(root.querySelector(".tool summary")?.textContent).toBe("grep x failed");
  expect(root.querySelector(".tool pre")?.textContent).toBe("no such file");
  transcript.remove("2");
  expect(root.children).toHaveLength(1);
});

test("thinking is folded, an error is an alert, and its buttons run their command", () => {
  const run = vi.fn();
  const transcript = new Transcript(root, { runCommand: run, code: { finish } });
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
  const transcript = new Transcript(root, { runCommand: () => undefined, code: { finish } });
  transcript.put({ kind: "user", id: "1", text: "hi", attachments: [] }, true);
  transcript.put({ kind: "text", id: "2", text: "hello", isStreaming: false, isInterrupted: true }, true);
  const labels = [...root.querySelectorAll("article")].map((one) => one.getAttribute("aria-label"));
  expect(labels).toEqual(["You", "Tiro"]);
  expect(root.querySelector<HTMLElement>(".mark")?.hidden).toBe(false);
});

test("a stored message has a menu that knows its number and whether it is pinned", () => {
  const transcript = new Transcript(root, { runCommand: () => undefined, code: { finish } });
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

test("code is handed on when its fence closes or the answer ends, not before", () => {
  const done: [string, string][] = [];
  const stream = new MarkdownStream(root, (block, language) => {
    done.push([language, block.querySelector("code")?.textContent ?? ""]);
  });
  stream.push("```py\nx = 1\n");
  expect(done).toEqual([]);
  stream.push("```\n\n```\nhalf");
  expect(done).toEqual([["py", "x = 1\n"]]);
  stream.end();
  expect(done).toEqual([["py", "x = 1\n"], ["", "half\n"]]);
  stream.end();
  expect(done).toHaveLength(2);
});

/** A transcript that shows the end of so many items. */
function long(count: number): Transcript {
  const transcript = new Transcript(root, { runCommand: () => undefined, code: { finish } });
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
  transcript.put({ kind: "tool", id: "t", name: "grep", summary: "x", status: "running", output: "" }, true);
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
