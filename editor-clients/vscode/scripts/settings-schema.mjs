// Writes what `tiro.settings` may hold into package.json, from the server's type of a configuration
// file: `npm run generate`, with TIRO_PYTHON as for the protocol.
import { execFileSync } from "node:child_process";
import { readFileSync, writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";

const PROGRAM =
  "import msgspec, sys; from tiro.config.settings import Document; " +
  "sys.stdout.buffer.write(msgspec.json.encode(msgspec.json.schema(Document)))";
const NULL = "null";

/** The server's JSON Schema of a configuration file. */
export function readSchema(python = process.env.TIRO_PYTHON ?? "python3") {
  return JSON.parse(execFileSync(python, ["-c", PROGRAM], { encoding: "utf8" }));
}

/** The same without references, as VS Code wants a setting: every key of every depth, and no other. */
export function settingsSchema(schema) {
  const inlined = ({ $ref, ...own }) => {
    const key = { ...schema.$defs[$ref?.split("/").at(-1)], ...own };
    const { default: value, anyOf, ...rest } = key;
    const told = Object.fromEntries(Object.entries(rest).filter(([name]) => !["title", "required"].includes(name)));
    const isPlain = value !== null && typeof value !== "object" && value !== undefined;
    return { ...(anyOf ? joined(anyOf.map(inlined), told) : withInner(told)), ...(isPlain ? { default: value } : {}) };
  };
  const withInner = ({ properties, additionalProperties, items, ...rest }) => ({
    ...rest,
    ...(items && { items: inlined(items) }),
    ...(additionalProperties && { additionalProperties: inlined(additionalProperties) }),
    ...(properties && {
      properties: Object.fromEntries(Object.entries(properties).map(([name, key]) => [name, inlined(key)])),
      additionalProperties: false,
    }),
  });
  const { properties, additionalProperties } = inlined({ $ref: schema.$ref });
  return { properties, additionalProperties };
}

/** One key that takes what any of these take: a choice or a type beside null is told in one. */
function joined(options, rest) {
  const others = options.filter(({ type }) => type !== NULL);
  const [only] = others;
  if (others.length > 1 || options.length === 1) {
    return { ...rest, anyOf: options };
  }
  return { ...rest, ...only, ...(only.enum ? { enum: [...only.enum, null] } : { type: [only.type, NULL] }) };
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const path = new URL("../package.json", import.meta.url);
  const manifest = JSON.parse(readFileSync(path, "utf8"));
  Object.assign(manifest.contributes.configuration.properties["tiro.settings"], settingsSchema(readSchema()));
  writeFileSync(path, `${JSON.stringify(manifest, null, 2)}\n`);
}
