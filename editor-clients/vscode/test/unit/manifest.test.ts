import { existsSync, readFileSync } from "node:fs";
import { resolve } from "node:path";

import { expect, test } from "vitest";

import { VIEW_COMMANDS } from "../../src/viewMessages";

interface Manifest {
  version: string;
  engines: { vscode: string };
  devDependencies: Record<string, string>;
  capabilities: { untrustedWorkspaces: { restrictedConfigurations: string[] } };
  contributes: {
    commands: { command: string; title: string; category: string; icon: string }[];
    menus: Record<string, { command?: string; submenu?: string; when?: string }[]>;
    submenus: { id: string }[];
    walkthroughs: { steps: { description: string; media: { image: string }; completionEvents: string[] }[] }[];
    configuration: { properties: Record<string, { markdownDescription?: string }> };
  };
}

const manifest = JSON.parse(read("package.json")) as Manifest;
const registered = new Set(
  [...read("src/commands.ts").matchAll(/^ {2}"(tiro\.\w+)":/gm)].map(([, id]) => id),
);

test("src/protocol.ts is what the server's schema says", async () => {
  process.env.PYTHONPATH ??= resolve("../../server");
  const { generate, readSchema } = await import("../../scripts/generate-protocol.mjs");
  expect(read("src/protocol.ts")).toBe(generate(readSchema()));
});

test("every command in the palette exists, and every command is in the palette", () => {
  const contributed = manifest.contributes.commands;
  expect(new Set(contributed.map(({ command }) => command))).toEqual(registered);
  expect(contributed.every(({ category }) => category === "Tiro")).toBe(true);
});

test("menus and buttons run only commands that exist", () => {
  const used = Object.values(manifest.contributes.menus).flat();
  const submenus = used.flatMap(({ submenu }) => submenu ?? []);
  for (const command of [...used.flatMap((entry) => entry.command ?? []), ...VIEW_COMMANDS.filter((command) => command.startsWith("tiro."))]) {
    expect(registered).toContain(command);
  }
  expect(submenus).toEqual(manifest.contributes.submenus.map(({ id }) => id));
});

test("every command has an icon, and what needs a turn or an editor is offered only with one", () => {
  for (const { command, icon, title } of manifest.contributes.commands) {
    expect(icon, command).toMatch(/^\$\([a-z-]+\)$/);
    expect(title, command).not.toBe("");
  }
  const conditions = new Map(manifest.contributes.menus.commandPalette?.map(({ command, when }) => [command, when]));
  expect(conditions.get("tiro.cancel")).toBe("tiro.answering");
  expect(conditions.get("tiro.explainCode")).toBe("editorIsOpen");
});

test("the walkthrough's buttons are commands, its steps end, and its pictures are there", () => {
  const [{ steps } = { steps: [] }] = manifest.contributes.walkthroughs;
  expect(steps.length).toBeGreaterThanOrEqual(5);
  for (const { description, media, completionEvents } of steps) {
    for (const [, command] of description.matchAll(/command:([\w.]+)/g)) {
      expect(registered).toContain(command);
    }
    expect(completionEvents).not.toEqual([]);
    expect(existsSync(media.image), media.image).toBe(true);
  }
});

test("what Emacs' keys do can be done here, too", () => {
  const table = read("../emacs/README.md").split("## Keys")[1]?.split("In the chat buffer")[0] ?? "";
  const theirs = [...table.matchAll(/^\| `\S+` \| `(tiro[\w-]*)`/gm)].map(([, name]) => name ?? "");
  expect(theirs.length).toBeGreaterThan(40);
  for (const name of theirs) {
    expect(registered.has(OURS[name] ?? "") || IN_VIEW.has(name), `${name} has a command or a place here`).toBe(true);
  }
});

test("every setting says what it does and stands in the README", () => {
  const readme = read("README.md");
  for (const [name, setting] of Object.entries(manifest.contributes.configuration.properties)) {
    expect(setting.markdownDescription?.length, name).toBeGreaterThan(20);
    expect(readme, name).toMatch(new RegExp(`\`(tiro)?\\.?${name.split(".").slice(1).join("\\.")}|\`\\.${name.split(".").at(-1) ?? ""}\``));
  }
});

test("a workspace that is not trusted cannot choose what is run", () => {
  const { restrictedConfigurations } = manifest.capabilities.untrustedWorkspaces;
  expect(restrictedConfigurations).toContain("tiro.server.command");
  expect(restrictedConfigurations).toContain("tiro.settings");
});

test("the API we are checked against is the oldest one we promise to run on", () => {
  expect(manifest.engines.vscode).toBe(`^${manifest.devDependencies["@types/vscode"] ?? ""}`);
});

test("extension.ts only puts things together: at most 60 lines", () => {
  expect(read("src/extension.ts").split("\n").length).toBeLessThanOrEqual(61);
});

/** Answered by a button of the question, or seen in the view. */
const IN_VIEW = new Set([
  "tiro-allow-once",
  "tiro-allow-always",
  "tiro-reject",
  "tiro-show-diff",
  "tiro-list-attachments",
  "tiro-compose",
]);

/** Emacs' command → ours. */
const OURS: Readonly<Record<string, string>> = {
  tiro: "tiro.ask",
  "tiro-ask": "tiro.ask",
  "tiro-ask-region": "tiro.askAbout",
  "tiro-ask-at-point": "tiro.askAbout",
  "tiro-ask-buffer": "tiro.askAboutFile",
  "tiro-attach": "tiro.attachSelection",
  "tiro-attach-diagnostics": "tiro.attachProblems",
  "tiro-steer": "tiro.steer",
  "tiro-cancel": "tiro.cancel",
  "tiro-retry": "tiro.retry",
  "tiro-rewind": "tiro.rewind",
  "tiro-edit-message": "tiro.editMessage",
  "tiro-show-session": "tiro.showSession",
  "tiro-clear-session": "tiro.clearSession",
  "tiro-new-session": "tiro.newSession",
  "tiro-rename-session": "tiro.renameSession",
  "tiro-restore-session": "tiro.showDeletedSessions",
  "tiro-save-session": "tiro.saveSession",
  "tiro-save-session-as": "tiro.saveSessionAs",
  "tiro-load-session": "tiro.loadSession",
  "tiro-resume-session": "tiro.continueSession",
  "tiro-list-sessions": "tiro.loadSession",
  "tiro-search-sessions": "tiro.searchSessions",
  "tiro-export": "tiro.exportSession",
  "tiro-import": "tiro.importSession",
  "tiro-explain": "tiro.explainRequest",
  "tiro-show-context-size": "tiro.contextSize",
  "tiro-resize": "tiro.previewResize",
  "tiro-undo-resize": "tiro.undoResize",
  "tiro-compact": "tiro.compactSession",
  "tiro-edit-memory": "tiro.editMemory",
  "tiro-toggle-pin": "tiro.pinMessage",
  "tiro-show-current-agent": "tiro.showCurrentAgent",
  "tiro-select-agent": "tiro.selectAgent",
  "tiro-select-model": "tiro.selectModel",
  "tiro-next-attention": "tiro.nextAttention",
  "tiro-undo-edits": "tiro.undoEdits",
  "tiro-redo-edits": "tiro.redoEdits",
  "tiro-doctor": "tiro.doctor",
  "tiro-show-log": "tiro.showLog",
  "tiro-show-stderr": "tiro.showLog",
  "tiro-restart": "tiro.restartServer",
  "tiro-shutdown": "tiro.stopServer",
  "tiro-menu": "tiro.menu",
};

function read(path: string): string {
  return readFileSync(path, "utf8");
}
