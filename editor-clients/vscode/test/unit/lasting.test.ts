import { expect, test } from "vitest";

import { lastingWords } from "../../src/lasting";
import { visible, visibleLines } from "../../src/visible";

test.each([
  ["bash: make allow (in /w/src)", "run exactly “make” in /w/src"],
  ["bash: cat ../k allow with /k (in /w)", "run exactly “cat ../k”, with /k in /w"],
  ["edit: a.py allow (in the workspace)", "change a.py in the workspace"],
  ["write: /out/k allow", "write /out/k"],
  ["read: .env allow (in the workspace)", "read .env in the workspace"],
  ["read: cat .env allow with /w/.env (in /w)", "read /w/.env by exactly “cat .env” in /w"],
  ["external_directory: /out allow", "go outside the workspace, to /out"],
  ["glob: **/*.py allow", "look for files like “**/*.py”"],
  ["grep: x allow", "search for “x”"],
  ["doom_loop: grep with this input allow", "repeat grep with this input"],
  ["own_tool: x allow", "own_tool: x allow"],
  ["bash: make allow (in /a allow (in b))", "bash: make allow (in /a allow (in b))"],
  ["bash: a\u202Eb allow (in /w)", "run exactly “a⟨U+202E⟩b” in /w"],
])("the rule %j is told in words, or as it stands where it can be read in two ways", (rule, words) => {
  expect(lastingWords([rule])).toEqual([words]);
});

test("what says the same is said once", () => {
  expect(lastingWords(["edit: a allow", "edit: a allow"])).toEqual(["change a"]);
});

test.each(["\u202E", "\u2066", "\u200B", "\u200D", "\u00AD", "\u0085", "\u2028", "\u3164", "\u115F", "\u2800", "\u034F", "\u{E0041}", "\u{E0100}", "\uFEFF", "\uD800", "\uE000"])(
  "%j cannot hide, in one line and in many",
  (one) => {
    const number = `⟨U+${one.codePointAt(0)?.toString(16).toUpperCase().padStart(4, "0") ?? ""}⟩`;
    expect([visible(`a${one}b`), visibleLines(`a${one}b\n`)]).toEqual([`a${number}b`, `a${number}b\n`]);
  },
);

test("controls stand there as their pictures", () => {
  expect(visible("\u0000\u001B[2J\u007F")).toBe("␀␛[2J␡");
});

test("what can be seen stays as it is: letters of all kinds, tabs, emoji, line ends", () => {
  const text = "a\té 日本 א❤️ 👍🏽";
  expect([visible(text), visibleLines(`${text}\r\n\n${text}`)]).toEqual([text, `${text}\r\n\n${text}`]);
  expect([visible("a\nb"), visibleLines("a\rb")]).toEqual(["a␊b", "a␍b"]);
});
