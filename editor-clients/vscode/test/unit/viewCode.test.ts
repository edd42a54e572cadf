// @vitest-environment happy-dom
import { beforeEach, expect, test, vi } from "vitest";

import { CodeBlocks, GrowingText, makeCodeBlock } from "../../media/codeBlock";
import { highlight } from "../../media/highlight";

const EVIL = '<img src=x onerror=alert(1)> & "quoted" </code><script>1</script>';
const near = new Map<Element, () => void>();

beforeEach(() => {
  near.clear();
  vi.stubGlobal("requestIdleCallback", (action: () => void) => {
    action();
  });
  vi.stubGlobal("IntersectionObserver", class {
    constructor(private readonly tell: (entries: { target: Element; isIntersecting: boolean }[]) => void) {}
    observe(target: Element) {
      near.set(target, () => {
        this.tell([{ target, isIntersecting: true }]);
      });
    }
    unobserve(target: Element) {
      near.delete(target);
    }
  });
});

/** A finished block, and its code. */
function finished(text: string, language: string, act = vi.fn()) {
  const { block, code } = makeCodeBlock(language);
  new GrowingText(code).show(text);
  new CodeBlocks(act).finish(block, language);
  return { block, code, act };
}

test.each(["python", "py", "ts", "html", "elisp", "c++", "sh"])("code in %s gets colours, and keeps its text", (language) => {
  const { code } = finished(`def f(a): return "x" ${EVIL}\n`, language);
  near.get(code)?.();
  expect(code.querySelectorAll("[class^=hljs-]").length).toBeGreaterThan(0);
  expect(code.textContent).toBe(`def f(a): return "x" ${EVIL}\n`);
  expect(code.querySelectorAll(":not(span)")).toHaveLength(0);
});

test("code is coloured when it comes near, once; what is long or unknown stays plain", () => {
  const { code } = finished("x = 1\n", "python");
  expect(code.querySelectorAll("[class^=hljs-]")).toHaveLength(0);
  near.get(code)?.();
  expect([code.querySelectorAll("[class^=hljs-]").length > 0, near.size]).toEqual([true, 0]);
  const long = finished("x = 1\n".repeat(10_000), "python");
  expect(near.size).toBe(0);
  expect(long.block.querySelector(".language")?.textContent).toBe("python · too long for colours");
  expect(finished("x = 1\n".repeat(10_000), "brainfuck").block.querySelector(".language")?.textContent).toBe("brainfuck");
  const unknown = document.createElement("code");
  unknown.textContent = "x = 1";
  highlight(unknown, "brainfuck");
  expect(unknown.innerHTML).toBe("x = 1");
});

test("a finished block has buttons that say what they do and hand on its text", () => {
  const { block, act } = finished("a < b\n", "c");
  const buttons = [...block.querySelectorAll("button")];
  expect(buttons.map(({ textContent, title }) => [textContent, title !== ""])).toEqual([["Copy", true], ["Insert", true], ["Apply…", true]]);
  buttons.forEach((button) => {
    button.click();
  });
  expect(act.mock.calls).toEqual([["copy", "a < b\n"], ["insert", "a < b\n"], ["apply", "a < b\n"]]);
});
