// Runs the suite in the real extension host of a real workbench: `npm run host`.
//
// A built workbench takes no test suite from its URL, but it reads `developmentOptions` from its
// configuration element. That is internal to VS Code, which is why the workbench is pinned.
import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";

import { build } from "esbuild";

import { finish } from "../../scripts/report.mjs";
import { EXTENSION, outFolder, startWorkbench } from "../workbench.mjs";

const TIMEOUT_MS = 1_000_000;
const MAX_LINE_CHARACTERS = 1_500;

const out = outFolder("host");
const suite = `${EXTENSION}/out/host-suite.js`;
await build({
  entryPoints: [`${EXTENSION}/test/host/suite.ts`],
  outfile: suite,
  bundle: true,
  platform: "node",
  format: "cjs",
  sourcemap: "inline",
  external: ["vscode", "mocha"],
  logLevel: "warning",
});

process.env.TIRO_TEST_RESULTS = `${out}/results.json`;
const bench = await startWorkbench({ out });
try {
  const code = await runSuite(bench);
  console.log(`the suite ended with ${code}`);
  await bench.page.screenshot({ path: `${out}/end.png` });
} finally {
  await bench.stop();
}
report();

async function runSuite({ page, authority }) {
  const ended = new Promise((resolve) => {
    void page.exposeFunction("codeAutomationExit", resolve);
    setTimeout(() => resolve("a timeout"), TIMEOUT_MS).unref();
  });
  await page.exposeFunction("codeAutomationLog", (_type, args) => {
    const text = args.join(" ");
    if (/^(ok|not ok) /.test(text)) {
      console.log(text.slice(0, MAX_LINE_CHARACTERS));
    }
  });
  const uri = (path) => ({ scheme: "vscode-remote", authority, path });
  await page.addInitScript(addDevelopmentOptions, {
    enableSmokeTestDriver: true,
    extensions: [uri(EXTENSION)],
    extensionTestsPath: uri(suite),
  });
  const workspace = `${out}/two.code-workspace`;
  mkdirSync(`${out}/second`);
  writeFileSync(workspace, JSON.stringify({ folders: [{ path: "workspace" }, { path: "second" }] }));
  await page.goto(`http://${authority}/?workspace=${workspace}`);
  return ended;
}

/** Runs in the page, before the workbench reads its configuration. */
function addDevelopmentOptions(options) {
  const { prototype } = globalThis.Element;
  const { getAttribute } = prototype;
  prototype.getAttribute = function (name) {
    const value = getAttribute.call(this, name);
    if (name !== "data-settings" || this.id !== "vscode-workbench-web-configuration") {
      return value;
    }
    const settings = JSON.parse(value);
    settings.developmentOptions = { ...settings.developmentOptions, ...options };
    return JSON.stringify(settings);
  };
}

function report() {
  console.log(`screenshot and logs: ${out}`);
  if (!existsSync(process.env.TIRO_TEST_RESULTS)) {
    console.log("the suite did not end");
    finish(0, 1);
    return;
  }
  const { passed, failed } = JSON.parse(readFileSync(process.env.TIRO_TEST_RESULTS, "utf8"));
  finish(passed, failed);
}
