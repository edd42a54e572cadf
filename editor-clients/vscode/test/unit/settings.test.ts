/** The settings of package.json are the server's: its types, choices, limits and defaults. */

import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { resolve } from "node:path";

import { expect, test } from "vitest";

import { MIRRORED } from "../../src/config";

interface Setting {
  type: string | string[];
  markdownDescription: string;
  enum?: (string | null)[];
  enumDescriptions?: string[];
  default: unknown;
  minimum?: number;
  properties?: Record<string, unknown>;
  additionalProperties?: boolean;
}

/** What the server says of a key of its configuration file. */
interface Key {
  $ref?: string;
  type?: string;
  enum?: string[];
  minimum?: number;
  anyOf?: Key[];
  properties?: Record<string, Key>;
  default?: unknown;
}

const { contributes } = JSON.parse(readFileSync("package.json", "utf8")) as {
  contributes: { configuration: { properties: Record<string, Setting> } };
};
const SETTINGS = contributes.configuration.properties;
/** Settings of the client, which the server does not know. */
const OURS_ALONE = new Set(["tiro.server.command", "tiro.attach", "tiro.saveEditedFiles", "tiro.settings"]);

const DEFINITIONS = definitions();
const FILE = resolved({ $ref: "#/$defs/Document" });

test("every setting is the client's own, or is sent to the server", () => {
  const others = Object.keys(SETTINGS).filter((name) => !OURS_ALONE.has(name));
  expect(others).toEqual(MIRRORED.map(([name]) => `tiro.${name}`));
});

test.each(MIRRORED)("tiro.%s has the server's type, choices, limit and default", (name, path) => {
  const setting = settingOf(`tiro.${name}`);
  const key = path.reduce((parent, part) => resolved(parent.properties?.[part]), FILE);
  const value = valueOf(key);
  expect(setting).toMatchObject({ type: [value.type ?? "string", "null"], default: null });
  expect(setting.enum?.toSorted()).toEqual(value.enum && [...value.enum, null].toSorted());
  expect(setting.enumDescriptions?.length).toBe(setting.enum?.length);
  expect(setting.minimum).toBe(value.minimum);
  const words = [setting.markdownDescription, ...(setting.enumDescriptions ?? [])].join(" ");
  expect(words).toContain(`hat \`config.yaml\` says, else ${wordsFor(key.default)}`);
});

test("tiro.settings takes the keys of the configuration file, and no others", () => {
  const { properties, additionalProperties } = settingOf("tiro.settings");
  const keys = Object.entries(FILE.properties ?? {}).map(([name, given]) => {
    const { type, enum: choices, anyOf } = resolved(given);
    return [name, choices === undefined ? { type: type ?? anyOf?.map((one) => one.type) } : { enum: choices }];
  });
  expect(properties).toEqual(Object.fromEntries(keys));
  expect(additionalProperties).toBe(false);
});

function settingOf(name: string): Setting {
  const setting = SETTINGS[name];
  if (setting === undefined) {
    throw new Error(`package.json has no setting ${name}`);
  }
  return setting;
}

/** The server's schema of its configuration file. */
function definitions(): Record<string, Key> {
  const program =
    "import msgspec, sys; from tiro.config.settings import Document; " +
    "sys.stdout.buffer.write(msgspec.json.encode(msgspec.json.schema(Document)))";
  const env = { ...process.env, PYTHONPATH: process.env.PYTHONPATH ?? resolve("../../server") };
  const text = execFileSync(process.env.TIRO_PYTHON ?? "python3", ["-c", program], { encoding: "utf8", env });
  return (JSON.parse(text) as { $defs: Record<string, Key> }).$defs;
}

/** The definition that a key refers to; its own default stays. */
function resolved(key: Key = {}): Key {
  const name = key.$ref?.split("/").at(-1);
  return name === undefined ? key : { ...DEFINITIONS[name], ...key };
}

/** What a key takes beside null. */
function valueOf(key: Key): Key {
  return key.anyOf?.find(({ type }) => type !== "null") ?? key;
}

/** A default as the descriptions name it. */
function wordsFor(value: unknown): string {
  const words = new Map<unknown, string>([[null, "the first provider that can be used"], [true, "on"], [false, "off"]]);
  return words.get(value) ?? (typeof value === "string" ? `\`${value}\`` : JSON.stringify(value));
}
