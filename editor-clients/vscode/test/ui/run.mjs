// The client as its user meets it: the installed package in a real workbench: `npm run ui`, and
// `npm run first` for the first day of somebody who has no server yet and uses VS Code's own Chat.
//
// Each step needs the ones before it; the first that fails ends the run. Screenshots go to TIRO_OUT.
import { existsSync } from "node:fs";
import { fileURLToPath } from "node:url";

import { finish } from "../../scripts/report.mjs";
import { outFolder, startWorkbench } from "../workbench.mjs";
import { FIRST, FIRST_BENCH } from "./first.mjs";
import { STEPS } from "./steps.mjs";
import { Ui } from "./ui.mjs";

const vsix = fileURLToPath(new URL("../../tiro-vscode.vsix", import.meta.url));
if (!existsSync(vsix)) {
  throw new Error(`${vsix} is missing; run \`npm run package\` first`);
}
const [plan = "ui", only] = process.argv.slice(2);
const { steps, options } = { ui: { steps: STEPS, options: {} }, first: { steps: FIRST, options: FIRST_BENCH } }[plan];
const out = outFolder(plan);
let passed = 0;
let failed = 0;
const bench = await startWorkbench({ out, vsix, ...options });
try {
  const ui = new Ui(bench);
  for (const [name, step] of Object.entries(steps)) {
    const start = performance.now();
    try {
      await step(ui);
      passed += 1;
      console.log(`ok ${name} (${Math.round(performance.now() - start)} ms)`);
    } catch (error) {
      failed += 1;
      console.log(`not ok ${name}\n${error.stack ?? error}`);
      await ui.shot("failed").catch(() => undefined);
      break;
    }
    if (name === only) {
      break;
    }
  }
} finally {
  await bench.stop();
}
console.log(`screenshots and logs: ${out}`);
finish(passed, failed);
