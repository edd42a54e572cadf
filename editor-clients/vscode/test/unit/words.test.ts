import { expect, test } from "vitest";
import type { TreeItem } from "vscode";
import { ResponseError } from "vscode-languageserver-protocol";

import { contextSizeHint, contextSizePicks, contextSizeText, tokensSentence, tokensText } from "../../src/contextSize";
import { actionsForError, kindOf, messageOf, ServerStoppedError } from "../../src/failure";
import { changeNotice } from "../../src/notices";
import { pageHtml } from "../../src/page";
import { hitPicks, menuPicks, modelPicks, sessionPicks, shortTime } from "../../src/pick";
import type { ContextSize, SearchHit, SessionRow } from "../../src/protocol";
import { sessionItem } from "../../src/sessionsTree";
import { statusText } from "../../src/statusBar";

const NO_TOKENS = {
  system: 0,
  tools: 0,
  memo: 0,
  summary: 0,
  user: 0,
  assistant: 0,
  toolUse: 0,
  toolResult: 0,
  attachments: 0,
};
const SIZE: ContextSize = {
  tokens: 12_345,
  errorPercent: 14.6,
  contextWindow: 32_768,
  ratio: 0.3767,
  breakdown: { ...NO_TOKENS, system: 300, user: 12_045 },
};

test("a time is as short as it can be told by", () => {
  const now = new Date(2026, 10, 28, 19, 30);
  expect(shortTime(new Date(2026, 10, 28, 9, 5), now)).toMatch(/^\D*9\D05\D*$/);
  expect(shortTime(new Date(2026, 10, 27, 9, 5), now)).toMatch(/^(?=.*27)[^:]*$/);
  expect(shortTime(new Date(2025, 10, 28, 9, 5), now)).toContain("2025");
});

test("the size of the next request in short and in full", () => {
  expect(tokensText(SIZE)).toBe("12.3k tokens (38 %)");
  expect(tokensText({ ...SIZE, tokens: 12, ratio: null })).toBe("12 tokens");
  expect(contextSizeText(SIZE)).toBe(
    "The next request: about 12,345 of 32,768 tokens, ±15 %",
  );
  expect(contextSizePicks(SIZE).slice(0, 3).map(({ label, description }) => [label, description])).toEqual([
    ["Your messages", "12,045 tokens · 98 %"],
    ["System prompt", "300 tokens · 2 %"],
    ["$(fold) Preview Resize", "what would leave the window"],
  ]);
  const unknown = { ...SIZE, errorPercent: null, contextWindow: null, breakdown: NO_TOKENS };
  expect(contextSizeText(unknown)).toBe("The next request: about 12,345 tokens");
  expect(contextSizeHint(SIZE)).toMatch(/15 % off lately/);
  expect(contextSizeHint(unknown)).toMatch(/no report/);
});

test("a session larger than its model takes is over the limit, and the next prompt makes room", () => {
  const over = { ...SIZE, tokens: 170_712, contextWindow: 8_192, ratio: 20.84 };
  expect(tokensText(over)).toBe("170.7k tokens (over the limit)");
  expect(tokensSentence(over)).toBe("170.7k tokens (over the limit): the next prompt makes room");
  expect(contextSizeText(over)).toBe(
    "The session: about 170,712 tokens, ±15 %, over the limit of 8,192: the next prompt makes room",
  );
  expect(tokensText({ ...SIZE, tokens: 999_949, ratio: null })).toBe("999.9k tokens");
  expect(tokensText({ ...SIZE, tokens: 999_950, ratio: null })).toBe("1.0M tokens");
  expect(tokensText({ ...SIZE, tokens: 1_234_567, ratio: 9 })).toBe("1.2M tokens (over the limit)");
  expect(tokensText({ ...SIZE, ratio: 1 })).toBe("12.3k tokens (100 %)");
  expect(tokensSentence(SIZE)).toBe("Next request: 12.3k tokens (38 %)");
  expect(tokensSentence(undefined)).toBe("");
});

test.each([
  ["ready", "$(comment) Tiro: build · claude · 12 tokens"],
  ["answering", "$(sync~spin) Tiro: build · claude · 12 tokens"],
  ["starting", "$(loading~spin) Tiro: starting"],
  ["stopped", "$(error) Tiro: stopped"],
] as const)("the status bar of a server that is %s", (state, text) => {
  const status = { state, agent: "build", model: "a/b/claude", tokens: "12 tokens" };
  expect(statusText(status)).toBe(text);
});

test("the status bar says above all that the user is waited for", () => {
  const status = { state: "answering", agent: "build", model: "m", tokens: "" } as const;
  expect(statusText(status, 1)).toBe("$(question) Tiro: 1 question");
  expect(statusText(status, 2)).toBe("$(question) Tiro: 2 questions");
});

test("hits keep the server's order and say where they are", () => {
  const hit: SearchHit = {
    id: "session-1",
    path: "/s/session-1.json",
    seq: 3,
    role: "user",
    savedAt: null,
    snippet: "the hit",
  };
  const picks = hitPicks([hit, { ...hit, id: null, path: null, takenBack: true }]);
  expect(picks.map(({ label, description }) => [label, description])).toEqual([
    ["the hit", "user · session-1"],
    ["the hit", "user · not saved yet · taken back"],
  ]);
});

test("saved sessions keep the server's order; a damaged one says what is wrong", () => {
  const row: SessionRow = {
    id: "session-1",
    path: "/s/session-1.json",
    title: "Fix the parser",
    agent: "build",
    messages: 3,
    archived: 1,
    savedAt: null,
    bytes: 10,
    error: null,
  };
  const picks = sessionPicks([row, { ...row, id: "session-2", title: null, error: "cut in half" }]);
  expect(picks.map(({ label, description, detail }) => [label, description, detail])).toEqual([
    ["Fix the parser", "session-1 · 4 messages · build", undefined],
    ["$(warning) session-2", "4 messages · build", "cut in half"],
  ]);
});

test("a row of the sessions view says what it is; only a saved one is loaded by a click", () => {
  const row: SessionRow = {
    id: "session-1",
    path: "/s/session-1.json",
    title: "Fix the parser",
    agent: "build",
    messages: 1,
    archived: 0,
    savedAt: null,
    bytes: 10,
    error: null,
  };
  const short = ({ label, description, contextValue, command }: TreeItem) => [label, description, contextValue, command?.arguments];
  expect(short(sessionItem(row, null))).toEqual(["Fix the parser", "1 message · build", "saved", ["/s/session-1.json"]]);
  expect(short(sessionItem(row, "session-1"))).toEqual(["Fix the parser", "1 message · build", "current", undefined]);
  const damaged = sessionItem({ ...row, title: null, error: "cut in half" }, null);
  expect(short(damaged)).toEqual(["session-1", "cut in half", "damaged", undefined]);
});

test("usable models come first, the others say why they are not", () => {
  const models = [
    { name: "a/x", provider: "a", contextWindow: null, available: false, reason: "no key" },
    { name: "b/y", provider: "b", contextWindow: 8_192, available: true, reason: null },
  ];
  expect(modelPicks(models, "a/x").map(({ label, description }) => [label, description])).toEqual([
    ["b/y", "8,192 tokens"],
    ["$(circle-slash) a/x", "current"],
  ]);
});

test("the menu offers what can be done now: the installation first, a running answer's rows while one runs", () => {
  const commands = (isAnswering: boolean, isMissing: boolean) =>
    menuPicks({ isAnswering, isMissing }).map(({ value }) => value);
  expect(commands(false, true)[0]).toBe("tiro.installServer");
  expect(commands(false, false)).not.toEqual(expect.arrayContaining(["tiro.steer"]));
  expect(commands(false, false)).not.toEqual(expect.arrayContaining(["tiro.cancel"]));
  expect(commands(true, false)).toEqual(expect.arrayContaining(["tiro.steer", "tiro.cancel"]));
  expect(commands(true, false)).not.toContain("tiro.installServer");
});

test("errors keep their message and lead to what helps", () => {
  const error = new ResponseError(-32031, "No model can be used", { kind: "modelNotConfigured" });
  expect([messageOf(error), kindOf(error)]).toEqual(["No model can be used", "modelNotConfigured"]);
  const commands = actionsForError(error).map(({ command }) => command);
  expect(commands).toEqual(["tiro.selectModel", "tiro.openSettings"]);
  expect(actionsForError(new ServerStoppedError())[0]?.command).toBe("tiro.restartServer");
  expect(actionsForError(new ServerStoppedError(new Error("not installed")))[0]?.command).toBe("tiro.installServer");
  expect([kindOf(new Error("x")), actionsForError("x")]).toEqual([undefined, []]);
});

test("a save that failed and one that works again are told, a new title is not", () => {
  expect(changeNotice("saveFailed", null)?.level).toBe("error");
  expect(changeNotice("saveFailed", null, "No space left on device")?.text).toContain("saved: No space left on device. It");
  expect(changeNotice("saveResumed", null)?.level).toBe("info");
  expect(changeNotice("renamed", "s-01")?.text).toContain("s-01");
  expect(changeNotice("titled", null)).toBeUndefined();
});

test("the page may load its own script and style, and nothing else", () => {
  const html = pageHtml({ style: "s.css", script: "c.js", source: "vscode:", nonce: "n0nce" });
  const policy = /Content-Security-Policy" content="([^"]+)"/.exec(html)?.[1];
  expect(policy).toBe(
    "default-src 'none'; style-src vscode:; script-src 'nonce-n0nce'; base-uri 'none'; form-action 'none'",
  );
  expect(html.match(/<script/g)).toHaveLength(1);
  expect(html).not.toMatch(/ style=| onclick=|https?:/);
});
