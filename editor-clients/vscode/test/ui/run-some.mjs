// The client as its user meets it: the installed package in a real workbench: `npm run ui`.
//
// Each step needs the ones before it; the first that fails ends the run. Screenshots go to TIRO_OUT.
import { existsSync } from "node:fs";
import { fileURLToPath } from "node:url";

import { finish } from "../../scripts/report.mjs";
import { outFolder, startWorkbench } from "../workbench.mjs";
import { STEPS } from "./steps.mjs";
import { Ui } from "./ui.mjs";

const vsix = fileURLToPath(new URL("../../tiro-vscode.vsix", import.meta.url));
if (!existsSync(vsix)) {
  throw new Error(`${vsix} is missing; run \`npm run package\` first`);
}
const out = outFolder("ui");
let passed = 0;
let failed = 0;
const bench = await startWorkbench({ out, vsix });
try {
  const ui = new Ui(bench);
  const only = process.argv[2];
  for (const [name, step] of Object.entries(STEPS).filter(([n]) => new RegExp(process.env.ONLY_STEPS).test(n))) {
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
