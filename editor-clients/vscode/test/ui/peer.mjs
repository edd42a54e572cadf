// What the real server does seldom or late, with a stand-in for it: progress, a save that fails, a flood (B44).
import assert from "node:assert/strict";
import { fileURLToPath } from "node:url";

import { until } from "../workbench.mjs";

export const PEER = {
  "progress is shown while it lasts": async (ui) => {
    const peer = fileURLToPath(new URL("../peer.mjs", import.meta.url));
    await ui.changeSettings({ "tiro.server.command": [process.execPath, peer] });
    await ui.command("Tiro: Restart Server");
    await ui.statusBar.filter({ hasText: "model" }).waitFor();
    await ui.ask("progress please");
    const activity = ui.view.locator("#activity");
    await activity.filter({ hasText: "Loading the model · 3 of 9 files · 33 %" }).waitFor();
    await ui.shot("progress");
    await ui.prompt.press("Escape");
    await ui.answers.last().filter({ hasText: "Loaded." }).waitFor();
    await until(async () => (await activity.textContent()) === "", "the progress is over");
  },

  "a save that fails is told, and when it works again": async (ui) => {
    await ui.ask("changed please");
    await ui.notices("The session cannot be saved.").waitFor();
    await ui.notices("The session is saved again.").waitFor();
    assert.equal(await ui.page.locator(".notification-toast").count(), 0);
  },

  "a flood of text is shown whole, and the window stays awake": async (ui) => {
    await ui.ask("flood please");
    await ui.answered("The end.");
    const words = [...(await ui.answers.last().textContent()).matchAll(/n(\d+) /g)];
    assert.equal(words.length, 2_000);
  },
};
