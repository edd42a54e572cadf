// The tests that need no workbench: `npm run unit`.
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

import { finish, runTool } from "./report.mjs";

const folder = mkdtempSync(join(tmpdir(), "tiro-unit-"));
try {
  const results = join(folder, "results.json");
  const isGood = runTool("vitest", "run", "--reporter=default", "--reporter=json", `--outputFile=${results}`);
  const { numPassedTests, numFailedTests } = JSON.parse(readFileSync(results, "utf8"));
  finish(numPassedTests, isGood ? 0 : Math.max(1, numFailedTests));
} finally {
  rmSync(folder, { recursive: true, force: true });
}
