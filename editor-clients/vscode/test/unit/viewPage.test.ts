// @vitest-environment happy-dom
/** The script of the Tiro view, run in its page. */

import { expect, test, vi } from "vitest";

import { pageHtml } from "../../src/page";

test("what is typed before the script runs stays, behind the draft of before", async () => {
  const setState = vi.fn();
  vi.stubGlobal("acquireVsCodeApi", () => ({
    postMessage: () => undefined,
    getState: () => ({ draft: "half a thought" }),
    setState,
  }));
  const page = pageHtml({ style: "", script: "", source: "", nonce: "" });
  document.body.innerHTML = /<body>(.*)<\/body>/s.exec(page)?.[1] ?? "";
  const prompt = document.querySelector<HTMLTextAreaElement>("#prompt");
  const send = document.querySelector<HTMLButtonElement>("#send");
  if (prompt === null || send === null) {
    throw new Error("The page has no form");
  }
  prompt.value = "and more";
  await import("../../media/chat.js");
  expect(prompt.value).toBe("half a thought\nand more");
  expect(send.disabled).toBe(false);
  expect(setState).toHaveBeenLastCalledWith({ draft: "half a thought\nand more" });
});
