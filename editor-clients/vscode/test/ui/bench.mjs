// How fast and how large the client is, next to the bars: `npm run bench`, after `npm run package`.
//
// A table, no pass or fail: times are of this machine, in a workbench that runs in a browser. What is
// measured by the clock grows with whatever else the machine does; what is measured in CPU time does not.
import { readdirSync, statSync } from "node:fs";
import { fileURLToPath } from "node:url";

import { outFolder, startWorkbench } from "../workbench.mjs";
import { scrollToFirst, writeLongSession } from "./scrolling.mjs";
import { Ui } from "./ui.mjs";

const ROUNDS = 5;
const MESSAGES = 10_000;
const SCROLLING_MS = 600_000;
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
    await ui.statusBar.waitFor();
    const shown = performance.now();
    await ui.statusBar.filter({ hasNotText: "starting" }).waitFor();
    ready.push(performance.now() - shown);
    activation.push(await activationMs(ui));
  }
  await ui.openView();
  const deltas = [];
  for (let round = 0; round < ROUNDS * 2; round += 1) {
    deltas.push(await firstDelta(ui, `number ${round}`));
  }
  const { frames, taskMs } = await scrolling(ui);
  row("ready, from the first sight of its status bar item", median(ready), "ms", 1_500);
  row("activation of its own, as VS Code counts it", median(activation), "ms", 150);
  row("first delta: from the provider to the eye", median(deltas), "ms", 50);
  row("longest task while 10,000 messages scroll, CPU time", taskMs, "ms", 100);
  row("slowest frame of it, by the clock", Math.max(...frames), "ms", 100);
  row("99 of 100 frames of it, by the clock", quantile(frames, 0.99), "ms", 100);
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
  await ui.closeEditors();
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

/**
 * A reader scrolls up through all messages, 700 pixels a frame: the milliseconds of the frames, and the
 * CPU time of the longest task of the page's thread, which is VS Code's own and the view's in one.
 */
async function scrolling(ui) {
  writeLongSession(ui.bench.out, MESSAGES);
  await ui.page.setViewportSize({ width: 1280, height: 860 });
  await ui.command("Tiro: Load Session");
  await ui.pick("long");
  await ui.answers.last().filter({ hasText: `message ${MESSAGES}` }).waitFor();
  const trace = await startTrace(ui.page);
  const { frames } = await ui.view.locator("#transcript").evaluate(scrollToFirst, SCROLLING_MS);
  await ui.view.getByText("message 1", { exact: true }).waitFor();
  const tasks = (await trace.stop()).filter(({ name, tdur }) => name.endsWith("RunTask") && tdur !== undefined);
  return { frames, taskMs: Math.max(...tasks.map(({ tdur }) => tdur)) / 1_000 };
}

/** Note what the threads of the browser run, until it is told to stop: the events on the page's thread. */
async function startTrace(page) {
  const cdp = await page.context().newCDPSession(page);
  const events = [];
  cdp.on("Tracing.dataCollected", ({ value }) => events.push(...value));
  const traceConfig = { includedCategories: ["devtools.timeline", "disabled-by-default-devtools.timeline", "toplevel"] };
  await cdp.send("Tracing.start", { traceConfig, transferMode: "ReportEvents" });
  return {
    stop: async () => {
      const complete = new Promise((resolve) => cdp.once("Tracing.tracingComplete", resolve));
      await cdp.send("Tracing.end");
      await complete;
      const threads = events.filter(({ name, args }) => name === "thread_name" && args.name === "CrRendererMain");
      return events.filter(({ pid, tid }) => threads.some((one) => one.pid === pid && one.tid === tid));
    },
  };
}

function median(values) {
  return quantile(values, 0.5);
}

function quantile(values, share) {
  return [...values].sort((one, other) => one - other)[Math.floor(values.length * share)];
}

function row(what, value, unit, bar) {
  console.log(`${what.padEnd(52)} ${value.toFixed(0).padStart(6)} ${unit}   bar ${bar} ${unit}`);
}
