// Types and style of all sources: `npm run check`. In the folder TIRO_CHECKED it leaves a mark for
// what has passed, and passes it again unread until a source, a setting or a package is another.
import { createHash } from "node:crypto";
import { existsSync, mkdirSync, readFileSync, readdirSync, writeFileSync } from "node:fs";
import { join, relative } from "node:path";
import { ROOT, finish, finishChecks, runTool } from "./report.mjs";

const MADE = /^(dist|out|node_modules|.*\.vsix)(\/|$)/;
const INSTALLED = "node_modules/.package-lock.json";

const checks = {
  "types of the extension and its tests": () => runTool("tsc", "--noEmit"),
  "types of the view": () => runTool("tsc", "--noEmit", "--project", "media"),
  style: () => runTool("eslint", "--max-warnings", "0", "."),
};

/** All that the checks read, as one hash. */
function inputs() {
  const files = readdirSync(ROOT, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => relative(ROOT, join(entry.path, entry.name)))
    .filter((name) => !MADE.test(name));
  const hash = createHash("sha256").update(process.version);
  for (const name of [INSTALLED, ...files.sort()]) {
    const content = readFileSync(join(ROOT, name));
    hash.update(`\n${name} ${String(content.length)}\n`).update(content);
  }
  return hash.digest("hex");
}

const folder = process.env.TIRO_CHECKED;
const mark = folder && join(folder, inputs());
if (mark && existsSync(mark)) {
  console.log("nothing has changed since all passed");
  finish(Object.keys(checks).length, 0);
} else {
  finishChecks(Object.fromEntries(Object.entries(checks).map(([name, run]) => [name, run()])));
  if (mark && process.exitCode === 0) {
    mkdirSync(folder, { recursive: true });
    writeFileSync(mark, "");
  }
}
