// Bundles the extension and the script of its view into dist/, with the licences of what is in them:
// `npm run build`.
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";

import { build } from "esbuild";

const common = { bundle: true, sourcemap: true, minify: true, metafile: true, logLevel: "warning" };
/** What is most of the code, and loaded when it is needed: a file of its own, which is not even read before. */
const LATE = "languageClient.js";
const extension = {
  ...common,
  platform: "node",
  format: "cjs",
  target: "node20",
  external: ["vscode", `./${LATE}`],
  supported: { "dynamic-import": false }, // `require`, into which VS Code puts its own module
};
const PACKAGE = /^.*node_modules\/(?:@[^/]+\/)?[^/]+/;

const results = await Promise.allSettled([
  build({ ...extension, entryPoints: ["src/extension.ts"], outfile: "dist/extension.js" }),
  build({ ...extension, entryPoints: ["src/languageClient.ts"], outfile: `dist/${LATE}` }),
  build({
    ...common,
    entryPoints: ["media/chat.ts"],
    outfile: "dist/chat.js",
    platform: "browser",
    format: "iife",
    target: "es2022",
  }),
]);
const failed = results.filter(({ status }) => status === "rejected").length;
if (failed === 0) {
  writeFileSync("dist/licenses.txt", licenses(results));
}
console.log(`${results.length - failed} passed, ${failed} failed`);
process.exitCode = failed === 0 ? 0 : 1;

/** The licences of the packages that were bundled; throws where one has none. */
function licenses(built) {
  const inputs = built.flatMap(({ value }) => Object.keys(value?.metafile.inputs ?? {}));
  const folders = new Set(inputs.map((path) => PACKAGE.exec(path)?.[0]).filter((path) => path !== undefined));
  const texts = [...folders].sort().map((folder) => {
    const { name, version } = JSON.parse(readFileSync(join(folder, "package.json"), "utf8"));
    const file = readdirSync(folder).find((one) => /^licen[cs]e/i.test(one));
    if (file === undefined) {
      throw new Error(`${name} has no licence file`);
    }
    return `${name} ${version}\n\n${readFileSync(join(folder, file), "utf8").trim()}\n`;
  });
  return texts.join(`\n${"-".repeat(80)}\n\n`);
}
