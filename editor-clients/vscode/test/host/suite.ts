/** The suite that runs inside the extension host; VS Code calls `run`. */

import { writeFileSync } from "node:fs";

import Mocha from "mocha";

/** Run all tests; a failure rejects, and the workbench exits with 1. */
export async function run(): Promise<void> {
  const mocha = new Mocha({ ui: "tdd", timeout: 600_000, reporter: "min" });
  if (process.env.TIRO_TEST_ONLY !== undefined) {
    mocha.grep(process.env.TIRO_TEST_ONLY);
  }
  mocha.suite.emit("pre-require", globalThis as unknown as Mocha.MochaGlobals, "", mocha);
  await import("./client.test.js");
  await import("./edits.test.js");
  await import("./memory.test.js");
  const counts = { passed: 0, failed: 0 };
  await new Promise<void>((resolve) => {
    mocha
      .run(() => {
        resolve();
      })
      .on("pass", (test) => {
        counts.passed += 1;
        say(`ok ${test.title} (${test.duration ?? 0} ms)`);
      })
      .on("fail", (test, error: Error) => {
        counts.failed += 1;
        say(`not ok ${test.title}\n${error.stack ?? error.message}`);
      });
  });
  writeFileSync(process.env.TIRO_TEST_RESULTS ?? "results.json", JSON.stringify(counts));
  if (counts.failed > 0) {
    throw new Error(`${counts.failed} tests failed`);
  }
}

function say(text: string): void {
  // eslint-disable-next-line no-console -- the workbench hands it to the runner
  console.log(text);
}
