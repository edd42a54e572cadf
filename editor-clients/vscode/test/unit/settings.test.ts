/** The settings of package.json are the server's: its types, choices, limits and defaults. */

import { readFileSync } from "node:fs";
import { resolve } from "node:path";

import { beforeAll, expect, test } from "vitest";

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

let schema: { $defs: Record<string, Key> };
let wanted: object;
let file: Key;

beforeAll(async () => {
  process.env.PYTHONPATH ??= resolve("../../server");
  const { readSchema, settingsSchema } = await import("../../scripts/settings-schema.mjs");
  schema = readSchema() as typeof schema;
  wanted = settingsSchema(schema);
  file = resolved({ $ref: "#/$defs/Document" });
});

test("every setting is the client's own, or is sent to the server", () => {
  const others = Object.keys(SETTINGS).filter((name) => !OURS_ALONE.has(name));
  expect(others).toEqual(MIRRORED.map(([name]) => `tiro.${name}`));
});

test.each(MIRRORED)("tiro.%s has the server's type, choices, limit and default", (name, path) => {
  const setting = settingOf(`tiro.${name}`);
  const key = path.reduce((parent, part) => resolved(parent.properties?.[part]), file);
  const value = valueOf(key);
  expect(setting).toMatchObject({ type: [value.type ?? "string", "null"], default: null });
  expect(setting.enum?.toSorted()).toEqual(value.enum && [...value.enum, null].toSorted());
  expect(setting.enumDescriptions?.length).toBe(setting.enum?.length);
  expect(setting.minimum).toBe(value.minimum);
  const words = [setting.markdownDescription, ...(setting.enumDescriptions ?? [])].join(" ");
  expect(words).toContain(`hat \`config.yaml\` says, else ${wordsFor(key.default)}`);
});

test("tiro.settings takes what the configuration file takes, at every depth: `npm run generate` writes it", () => {
  const { properties, additionalProperties } = settingOf("tiro.settings");
  expect({ properties, additionalProperties }).toEqual(wanted);
  expect(Object.keys(properties ?? {})).toEqual(Object.keys(file.properties ?? {}));
});

test("a key within tiro.settings has its type, its limits and its choices, and a misspelt one is none", () => {
  const { properties } = settingOf("tiro.settings");
  expect(properties).toMatchObject({
    session: {
      properties: {
        resize: { properties: { max_keep_messages_count: { type: ["integer", "null"], minimum: 0 } } },
        fsync: { enum: ["message", "never", "turn"], default: "turn" },
      },
      additionalProperties: false,
    },
    providers: {
      additionalProperties: { properties: { api: { enum: ["anthropic", "local", "openai", null] } }, additionalProperties: false },
    },
    permission: { type: "object" },
  });
  expect(JSON.stringify(properties)).not.toContain("$ref");
});

function settingOf(name: string): Setting {
  const setting = SETTINGS[name];
  if (setting === undefined) {
    throw new Error(`package.json has no setting ${name}`);
  }
  return setting;
}

/** The definition that a key refers to; its own default stays. */
function resolved(key: Key = {}): Key {
  const name = key.$ref?.split("/").at(-1);
  return name === undefined ? key : { ...schema.$defs[name], ...key };
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
