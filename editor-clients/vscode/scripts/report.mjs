// Runs programs one after another and counts: every script of ours ends with `N passed, N failed`.
import { spawnSync } from "node:child_process";
import { fileURLToPath } from "node:url";

export const ROOT = fileURLToPath(new URL("..", import.meta.url));

/** Run a program of node_modules/.bin; true when it succeeded. */
export function runTool(name, ...args) {
  const path = fileURLToPath(new URL(`../node_modules/.bin/${name}`, import.meta.url));
  return spawnSync(path, args, { cwd: ROOT, stdio: "inherit" }).status === 0;
}

/** Print the last line and set the exit code. */
export function finish(passed, failed) {
  console.log(`${passed} passed, ${failed} failed`);
  process.exitCode = failed === 0 && passed > 0 ? 0 : 1;
}

/** Print each check that failed, then finish. */
export function finishChecks(checks) {
  const failed = Object.entries(checks).filter(([, isGood]) => !isGood);
  for (const [name] of failed) {
    console.log(`failed: ${name}`);
  }
  finish(Object.keys(checks).length - failed.length, failed.length);
}
