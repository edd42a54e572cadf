// How fast and how large the client is, next to the bars: `npm run bench`, after `npm run package`.
//
// A table, no pass or fail: times are of this machine, in a workbench that runs in a browser.
import { readdirSync, statSync } from "node:fs";
import { fileURLToPath } from "node:url";

import { outFolder, startWorkbench } from "../workbench.mjs";
import { Ui } from "./ui.mjs";

const ROUNDS = 5;
const vsix = fileURLToPath(new URL("../../tiro-vscode.vsix", import.meta.url));
const dist = fileURLToPath(new URL("../../dist", import.meta.url));

const bench = await startWorkbench({ out: outFolder("bench"), vsix });
try {
  const ui = new Ui(bench);
  await ui.page.setViewportSize({ width: 1280, height: 3_000 }); // a list paints only what is seen
  await ui.page.goto(bench.url);
  const [ready, activation] = [[], []];
  for (let round = 0; round < ROUNDS; round += 1) {
    await ui.page.reload();
    await ui.page.locator(".monaco-workbench .statusbar").waitFor();
    await ui.statusBar.waitFor({ timeout: 60_000 });
    const shown = performance.now();
    await ui.statusBar.filter({ hasNotText: "starting" }).waitFor({ timeout: 60_000 });
    ready.push(performance.now() - shown);
    activation.push(await activationMs(ui));
  }
  await ui.openView();
  const deltas = [];
  for (let round = 0; round < ROUNDS * 2; round += 1) {
    deltas.push(await firstDelta(ui, `number ${round}`));
  }
  row("ready, from the first sight of its status bar item", median(ready), "ms", 1_500);
  row("activation of its own, as VS Code counts it", median(activation), "ms", 150);
  row("first delta: from the provider to the eye", median(deltas), "ms", 50);
  const bytes = readdirSync(dist).filter((name) => name.endsWith(".js")).reduce((sum, name) => sum + statSync(`${dist}/${name}`).size, 0);
  row("bundle", bytes / 1_000, "kB", 1_000);
  row("package", statSync(vsix).size / 1_000, "kB", 1_000);
} finally {
  await bench.stop();
}

/** VS Code's own count, in its list of running extensions. */
async function activationMs(ui) {
  await ui.command("Developer: Show Running Extensions");
  const text = await ui.page.locator(".runtime-extensions-editor .extension").filter({ hasText: "Tiro" }).first().innerText();
  await ui.command("View: Close All Editors");
  return Number(/(\d+)\s*ms/.exec(text)?.[1]);
}

/** From the provider's first piece of an answer to its text in the page. */
async function firstDelta(ui, prompt) {
  const count = await ui.view.locator(".item.text").count();
  const seen = ui.view.locator("body").evaluate(
    (body, before) =>
      new Promise((resolve) => {
        const look = () => {
          const texts = body.querySelectorAll(".item.text");
          if (texts.length > before && texts[before].textContent.includes("This is")) {
            observer.disconnect();
            globalThis.requestAnimationFrame(() => resolve(Date.now()));
          }
        };
        const observer = new globalThis.MutationObserver(look);
        observer.observe(body, { childList: true, subtree: true, characterData: true });
      }),
    count,
  );
  await ui.ask(prompt);
  const at = await seen;
  await ui.answered("This is");
  return at - ui.provider.requests.at(-1).answeredAt;
}

function median(values) {
  return [...values].sort((one, other) => one - other)[Math.floor(values.length / 2)];
}

function row(what, value, unit, bar) {
  console.log(`${what.padEnd(52)} ${value.toFixed(0).padStart(6)} ${unit}   bar ${bar} ${unit}`);
}
