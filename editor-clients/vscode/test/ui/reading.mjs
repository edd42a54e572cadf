// Reading while more comes, and what survives when the view, the server or the window goes away.
import assert from "node:assert/strict";

import { SERVER_COMMAND, until } from "../workbench.mjs";

export const READING = {
  "a reader who scrolled up stays there, one at the end is taken along (B64)": async (ui) => {
    const transcript = ui.view.locator("#transcript");
    await ui.ask("slow three");
    await ui.answers.last().filter({ hasText: "word5" }).waitFor();
    await transcript.evaluate((element) => (element.scrollTop = 40));
    const follow = ui.view.getByRole("button", { name: "Jump to the End" });
    await follow.waitFor();
    const top = await transcript.evaluate(topItem);
    const length = (await ui.answers.last().textContent()).length;
    await until(async () => (await ui.answers.last().textContent()).length > length + 50, "more arrives");
    const { id, place } = await transcript.evaluate(topItem);
    assert.equal(id, top.id, "the reader was moved");
    assert.ok(Math.abs(place - top.place) <= 2, `the reader was moved from ${top.place} to ${place}`);
    await ui.shot("scrolled-up");
    await follow.click();
    await until(() => transcript.evaluate(isAtEnd), "the end is shown");
    const later = (await ui.answers.last().textContent()).length;
    await until(async () => (await ui.answers.last().textContent()).length > later + 50, "more arrives");
    await until(() => transcript.evaluate(isAtEnd), "the reader at the end is taken along");
  },

  "a view that was hidden in mid-answer comes back whole, with the draft (B64)": async (ui) => {
    await ui.prompt.fill("half a thought");
    await ui.hideView();
    await ui.page.getByRole("tab", { name: "Tiro" }).first().click();
    await ui.answers.last().filter({ hasText: "word5" }).waitFor();
    assert.equal(await ui.prompt.inputValue(), "half a thought");
    ui.provider.finish();
    await ui.answered("word199");
    const text = await ui.answers.last().textContent();
    const words = [...text.matchAll(/word(\d+)/g)].map(([, number]) => Number(number));
    assert.deepEqual(words, Array.from(words, (_, index) => index));
    await ui.prompt.fill("");
  },

  "a killed server is started again by itself, with all that was acknowledged (P3, U9.3)": async (ui) => {
    await ui.ask("slow four");
    await ui.answers.last().filter({ hasText: "word5" }).waitFor();
    const starts = ui.serverStarts();
    const pid = await ui.serverPid();
    process.kill(pid, "SIGKILL");
    await ui.notices("Interrupted: the server ended in the middle of this answer").waitFor();
    await ui.serverPid(pid);
    await ui.statusBar.filter({ hasText: "plan" }).waitFor();
    await ui.prompts.last().filter({ hasText: "slow four" }).waitFor();
    await ui.view.locator(".item:last-child.notice").filter({ hasText: "Interrupted" }).waitFor();
    assert.equal(await ui.page.locator(".notification-toast").count(), 0);
    await ui.shot("killed");
    await ui.ask("still there?");
    await ui.answered("You said: still there?");
    assert.equal(ui.serverStarts(), starts + 1);
  },

  "a server that dies again and again is told once, and started again when that is asked for": async (ui) => {
    for (let death = 2; death <= 4; death += 1) {
      const pid = await ui.serverPid();
      process.kill(pid, "SIGKILL");
      await ui.serverPid(pid);
      await ui.ask(`after death ${death}`);
      await ui.answered(`You said: after death ${death}`); // else the next one would hit a server that only starts
    }
    const starts = ui.serverStarts();
    process.kill(await ui.serverPid(), "SIGKILL");
    const toast = ui.toast("The Tiro server stopped (signal SIGKILL)");
    await toast.waitFor();
    await ui.statusBar.filter({ hasText: "stopped" }).waitFor();
    assert.equal(await ui.page.locator(".notification-toast").count(), 1);
    await ui.shot("given-up");
    assert.equal(ui.serverStarts(), starts);
    await toast.getByRole("button", { name: "Restart" }).click();
    await ui.statusBar.filter({ hasText: "plan" }).waitFor();
    await ui.answers.last().filter({ hasText: "You said: after death 4" }).waitFor();
  },

  "the window is reloaded, and the chat is still there (B63, B64)": async (ui) => {
    const loaded = ui.page.waitForEvent("load");
    await ui.command("Developer: Reload Window");
    await loaded;
    await ui.ready();
    await ui.serverPid(); // the old window's has ended
    await ui.prompt.waitFor();
    await ui.answers.last().filter({ hasText: "You said: after death 4" }).waitFor();
    await ui.notices("Interrupted: the server ended in the middle of this answer").waitFor();
    await ui.statusBar.filter({ hasText: "plan" }).waitFor();
    await ui.ask("after the reload");
    await ui.answered("You said: after the reload");
    await ui.shot("reloaded");
  },

  "a server that cannot be started is told once, with what to do": async (ui) => {
    await ui.changeSettings({ "tiro.server.command": ["/nowhere/tiro", "serve"] });
    await ui.command("Tiro: Restart Server");
    await ui.toast("/nowhere/tiro").waitFor();
    await ui.shot("missing-server");
    await ui.send("anybody there?");
    const notice = ui.alerts.last();
    await notice.filter({ hasText: "The Tiro server is not running" }).waitFor();
    assert.equal(await ui.page.locator(".notification-toast").count(), 1);
    assert.equal(await ui.prompt.inputValue(), "anybody there?", "the prompt is lost");
    await ui.changeSettings({ "tiro.server.command": SERVER_COMMAND });
    await notice.getByRole("button", { name: "Restart" }).click();
    await ui.answers.last().filter({ hasText: "You said: after the reload" }).waitFor();
    await ui.prompt.press("Enter");
    await ui.answered("You said: anybody there?");
    await ui.prompts.last().filter({ hasText: "anybody there?" }).waitFor();
    await ui.dismissToasts();
  },
};

/** Whether the last line is seen; runs in the page. */
export function isAtEnd(element) {
  return element.scrollHeight - element.scrollTop - element.clientHeight < 24;
}

/** Which item the reader sees first, and where; runs in the page. */
function topItem(element) {
  const { top } = element.getBoundingClientRect();
  const item = [...element.querySelectorAll(".item")].find((one) => one.getBoundingClientRect().bottom > top);
  return { id: item.dataset.id, place: item.getBoundingClientRect().top };
}
