import { readFileSync } from "node:fs";
import { resolve } from "node:path";

import { expect, test } from "vitest";

import { VIEW_COMMANDS } from "../../src/viewMessages";

interface Manifest {
  version: string;
  engines: { vscode: string };
  devDependencies: Record<string, string>;
  capabilities: { untrustedWorkspaces: { restrictedConfigurations: string[] } };
  contributes: {
    commands: { command: string; title: string; category: string }[];
    menus: Record<string, { command: string }[]>;
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
  for (const command of [...used.map((entry) => entry.command), ...VIEW_COMMANDS]) {
    expect(registered).toContain(command);
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

function read(path: string): string {
  return readFileSync(path, "utf8");
}
