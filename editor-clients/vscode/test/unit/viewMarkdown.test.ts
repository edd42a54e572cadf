// @vitest-environment happy-dom
import { beforeEach, expect, test, vi } from "vitest";

import type { Step } from "../../media/frames";
import { MarkdownStream } from "../../media/markdown";

let root: HTMLElement;
let steps: Step[];
const frames = {
  add: (step: Step) => {
    steps.push(step);
  },
};

beforeEach(() => {
  root = document.createElement("div");
  root.className = "markdown";
  document.body.replaceChildren(root);
  steps = [];
});

/** Let a frame pass: each step that waits is done once. */
function frame(): void {
  steps = steps.filter((step) => step());
}

function frameAll(): number {
  let count = 0;
  for (; steps.length > 0; count += 1) {
    frame();
  }
  return count;
}

/** Paint a text that arrives in pieces of some size, each in a frame of its own. */
function paint(text: string, size: number): string {
  root.replaceChildren();
  const stream = new MarkdownStream(root, frames);
  for (let start = 0; start < text.length; start += size) {
    stream.push(text.slice(start, start + size));
    frame();
  }
  stream.end();
  frameAll();
  return html();
}

/** What is painted; the stand-in for a browser leaves empty attributes behind. */
function html(): string {
  return [...root.children].map(({ innerHTML }) => innerHTML.replaceAll(' class=""', "")).join("");
}

function blocks(): Element[] {
  return [...root.querySelectorAll(".markdown > .run > *")];
}

function check(text: string, wanted: string): void {
  for (const size of [text.length || 1, 1, 3, 7]) {
    expect(paint(text, size), `in pieces of ${size}`).toBe(wanted);
  }
}

function codeHtml(text: string, language = ""): string {
  const label = language === "" ? "Code" : `Code, ${language}`;
  return `<div class="code"><div class="bar"><span class="language">${language}</span></div><pre tabindex="0" role="group" aria-label="${label}"><code><span class="run">${text}</span></code></pre></div>`;
}

function link(href: string, text: string): string {
  return `<a href="${href}" title="${href}">${text}</a>`;
}

test("paragraphs, with their line breaks", () => {
  check("one\ntwo\n\nthree", "<p>one\ntwo</p><p>three</p>");
  check("one\r\ntwo\r\n\r\nthree", "<p>one\ntwo</p><p>three</p>");
});

test("emphasis, code, what is struck out, and entities", () => {
  check(
    "a **b** *c* _cc_ `d*e*` ~~f~~ __*g*__ &lt;&amp;&#8364;",
    "<p>a <strong>b</strong> <em>c</em> <em>cc</em> <code>d*e*</code> <del>f</del> <strong><em>g</em></strong> &lt;&amp;€</p>",
  );
});

test("links to the web, also those that stand alone, say where they lead", () => {
  check(
    "[f](https://g.org/h) <https://i.org> https://j.org/k?l=1. m@n.org",
    `<p>${link("https://g.org/h", "f")} ${link("https://i.org", "https://i.org")} ${link("https://j.org/k?l=1", "https://j.org/k?l=1")}. ${link("mailto:m@n.org", "m@n.org")}</p>`,
  );
});

test("a label means what was said above", () => {
  check("[a]: https://b.org\n\nSee [a].", `<p>${link("https://b.org", "a")}: ${link("https://b.org", "https://b.org")}</p><p>See ${link("https://b.org", "a")}.</p>`);
});

test("headings, rules and quotes", () => {
  check(
    "# One\n## Two #\nThree\n===\n\n---\n> a\n> - b\n\nc",
    "<h3>One</h3><h4>Two</h4><h3>Three</h3><hr><blockquote><p>a</p><ul><li><p>b</p></li></ul></blockquote><p>c</p>",
  );
});

test("lists lie in each other, and begin where they say", () => {
  check(
    "- a\n- b\n  - c\n    1. d\n  - e\n\n3. f\n4. g",
    '<ul><li><p>a</p></li><li><p>b</p><ul><li><p>c</p><ol><li><p>d</p></li></ol></li><li><p>e</p></li></ul></li></ul><ol start="3"><li><p>f</p></li><li><p>g</p></li></ol>',
  );
});

test("paragraphs and code in items stay in them", () => {
  check(
    "1. a\n\n   b\n\n   ```py\n   x = 1\n   ```\n\n2. c",
    `<ol class="loose"><li><p>a</p><p>b</p>${codeHtml("x = 1", "py")}</li><li><p>c</p></li></ol>`,
  );
});

test("tasks have boxes that nobody can tick", () => {
  const box = (isDone: boolean) => `<input type="checkbox" disabled=""${isDone ? ' checked=""' : ""} aria-label="${isDone ? "Done" : "To do"}">`;
  const wanted = `<ul><li class="task">${box(true)}<p>a</p></li><li class="task">${box(false)}<p>b</p></li></ul><p>[ ] c</p>`;
  const bare = (text: string) => text.replaceAll(' checked=""', "");
  for (const size of [1, 4, 100]) {
    expect(bare(paint("- [x] a\n- [ ] b\n\n[ ] c", size))).toBe(bare(wanted));
    expect([...root.querySelectorAll("input")].map(({ checked }) => checked)).toEqual([true, false]);
  }
});

test("tables have a head, and columns that lean where they say", () => {
  check(
    "| a | b |\n|:--|--:|\n| `c` | d\\|e |\n| f |\n\ng",
    '<div class="table" tabindex="0" role="group" aria-label="Table"><table><thead><tr><th class="left">a</th><th class="right">b</th></tr></thead>' +
      '<tbody><tr><td class="left"><code>c</code></td><td class="right">d|e</td></tr><tr><td class="left">f</td><td class="right"></td></tr></tbody></table></div><p>g</p>',
  );
});

test("code keeps every character, markup in it too", () => {
  check("```py\nif a < b:\n\n    # **no**\n```\nafter", `${codeHtml("if a &lt; b:\n\n    # **no**", "py")}<p>after</p>`);
  check("````md\n```py\nx\n```\n````\n", codeHtml("```py\nx\n```", "md"));
});

test("a fence that never ends is still shown as code", () => {
  check("~~~\nx", codeHtml("x"));
});

test("markup of the model is text, and a link cannot run anything", () => {
  const evil = '<img src=x onerror=alert(1)> <script>alert(1)</script> [x](javascript:alert(1)) [y](command:z) ![i](data:text/html,x)\n\n<div onclick="a">\n\nb</div>';
  paint(evil, 5);
  expect(blocks().map(({ textContent }) => textContent).join("\n\n")).toBe(evil);
  expect(root.querySelectorAll("img, a, script, .run div")).toHaveLength(0);
});

test("an image is a link, and nothing is loaded", () => {
  check("![a *b*](https://c.org/d.png)", `<p><a href="https://c.org/d.png" title="https://c.org/d.png">a <em>b</em></a></p>`);
});

test("arithmetic and snake case stay what they are", () => {
  check("2 * 3 * 4 and __init__ and a_b_c", "<p>2 * 3 * 4 and <strong>init</strong> and a_b_c</p>");
});

test("what nests without end is text, and costs no stack", () => {
  paint(`${"> ".repeat(5_000)}x`, 10_000);
  expect(root.querySelectorAll("blockquote")).toHaveLength(12);
  paint(Array.from({ length: 200 }, (_, depth) => `${"  ".repeat(depth)}- ${depth}`).join("\n"), 50_000);
  expect(root.querySelectorAll("ul")).toHaveLength(12);
  expect(root.textContent).toContain("199");
});

test("a line that may become something else waits for its next character", () => {
  const stream = new MarkdownStream(root, frames);
  for (const [piece, wanted] of [
    ["text\n", "<p>text</p>"],
    ["-", "<p>text</p>"],
    [" a", "<p>text</p><ul><li><p>a</p></li></ul>"],
    ["\n\n``", "<p>text</p><ul><li><p>a</p></li></ul>"],
  ] as const) {
    stream.push(piece);
    frame();
    expect(html()).toBe(wanted);
  }
  stream.end();
  expect(root.textContent).toBe("texta``");
  expect(root.querySelectorAll("code")).toHaveLength(0);
});

test("an unfinished line is shown at once, in the block where it will stand", () => {
  const stream = new MarkdownStream(root, frames);
  stream.push("```\nfirst\nsec");
  expect(root.querySelector("pre")?.textContent).toBe("first\nsec");
  stream.push("ond");
  frame();
  expect(root.querySelector("pre")?.textContent).toBe("first\nsecond");
});

test("code is handed on when its fence closes or the answer ends, not before", () => {
  const done: [string, string][] = [];
  const stream = new MarkdownStream(root, frames, (block, language) => {
    done.push([language, block.querySelector("code")?.textContent ?? ""]);
  });
  stream.push("```py\nx = 1\n");
  expect(done).toEqual([]);
  stream.push("```\n");
  frame();
  expect(done).toEqual([["py", "x = 1"]]);
  stream.push("\n- a\n\n  ```\n  half");
  frame();
  expect(done).toHaveLength(1);
  stream.end();
  expect(done).toEqual([["py", "x = 1"], ["", "half"]]);
  stream.end();
  expect(done).toHaveLength(2);
});

/** How many nodes change when a piece arrives. */
async function touched(before: string, piece: string): Promise<number> {
  root.replaceChildren();
  const stream = new MarkdownStream(root, frames);
  stream.push(before);
  frameAll();
  const seen = vi.fn<(count: number) => void>();
  const observer = new MutationObserver((records) => {
    seen(records.length);
  });
  observer.observe(root, { childList: true, characterData: true, subtree: true });
  stream.push(piece);
  frameAll();
  await new Promise((resolve) => setTimeout(resolve, 5));
  observer.disconnect();
  return seen.mock.calls.flat().reduce((sum, count) => sum + count, 0);
}

test.each([
  ["paragraphs", "a line of text\n\n".repeat(500), "more"],
  ["a list", "- an item with `code`\n".repeat(300), "- more"],
  ["a table", `| a | b |\n|---|---|\n${"| c | *d* |\n".repeat(300)}`, "| more"],
  ["code", `\`\`\`\n${"x = 1\n".repeat(5_000)}`, "more"],
  ["a quote", "> a line of text\n>\n".repeat(100), "> more"],
  ["a line without an end", "x".repeat(3_000), "y"],
])("a delta touches only the end, however long %s is", async (_, before, piece) => {
  expect(await touched(before, piece)).toBeLessThan(12);
});

test("what comes at once is painted in steps, in order, to the end", () => {
  const text = Array.from({ length: 1_500 }, (_, index) => `Paragraph ${index} with *some* words\n\n`).join("");
  const stream = new MarkdownStream(root, frames);
  stream.push(text);
  stream.end();
  const first = blocks().length;
  expect([first > 50, first < 400]).toEqual([true, true]);
  expect(frameAll()).toBeGreaterThan(10);
  expect(blocks().length).toBe(1_500);
  expect(root.textContent).toContain("Paragraph 1499 with some words");
});

test.each([
  ["bullets", (index: number) => `- item ${index}\n`],
  ["numbers", (index: number) => `${index + 1}. item ${index}\n`],
])("a long list of %s goes on as another one, in which nothing is missing or twice", (_, line) => {
  paint(Array.from({ length: 600 }, (_item, index) => line(index)).join(""), 300);
  const items = [...root.querySelectorAll("li")].map(({ textContent }) => textContent);
  expect(items).toEqual(Array.from({ length: 600 }, (_item, index) => `item ${index}`));
  const lists = [...root.querySelectorAll("ol")].slice(1);
  const before = (list: Element) => items.indexOf(list.querySelector("li")?.textContent ?? "");
  expect(lists.map((list) => Number(list.getAttribute("start")))).toEqual(lists.map((list) => before(list) + 1));
});

test("code of any length is the text that it was", () => {
  const text = Array.from({ length: 5_000 }, (_, index) => `line ${index}`).join("\n");
  paint(`\`\`\`py\n${text}\n\`\`\`\nafter`, 3_001);
  expect(root.querySelector("code")?.textContent).toBe(text);
  expect(root.querySelectorAll("code > .run").length).toBeGreaterThan(5);
});

test("a block that is too long to be read again and again goes on as a new one", () => {
  paint("> a line of a quote\n".repeat(5_000), 5_000);
  expect(root.querySelectorAll("blockquote").length).toBeGreaterThan(1);
  expect(root.textContent.match(/a line of a quote/g)).toHaveLength(5_000);
});

test("what is taken off the page is not painted any further", () => {
  const stream = new MarkdownStream(root, frames);
  stream.push("a\n\n".repeat(50_000));
  const count = blocks().length;
  root.remove();
  frameAll();
  expect(blocks().length).toBe(count);
});

test("in whatever pieces a long text comes, nothing of it is lost", () => {
  const parts = ["a *b* c\n", "\n", "- d\n", "  - e\n", "1. f\n", "```\n", "x\n", "| a | b |\n", "|---|---|\n", "> q\n", "    i\n", "\tt\n", "# h\n", "---\n", "===\n", "[l]: u\n", "- [ ] t\n", "<p>\n", "  \n", "w"];
  let seed = 1;
  const random = (limit: number) => (seed = (seed * 48_271) % 2_147_483_647) % limit;
  for (let round = 0; round < 25; round += 1) {
    const text = Array.from({ length: 30 }, () => parts[random(parts.length)]).join("");
    const painted = (size: number) => paint(text, size).replaceAll(/\s+/g, "");
    const whole = painted(text.length);
    expect(painted(1), JSON.stringify(text)).toBe(whole);
    expect(painted(1 + random(40)), JSON.stringify(text)).toBe(whole);
  }
});
