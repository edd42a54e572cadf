// The session as a whole: shown, measured, resized, answered by others, saved, cleared, loaded, deleted.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";

import { until } from "../workbench.mjs";

export const SESSION = {
  "Show Session opens the exact text, read-only (M2.10)": async (ui) => {
    await ui.command("Tiro: Show Session");
    const editor = ui.page.locator(".editor-instance").last();
    await editor.getByText("Session Summary:").waitFor();
    await editor.getByText("[USER] from the palette").waitFor();
    await editor.getByText("[ASSISTANT] You said: from the palette").waitFor();
    await ui.shot("show-session");
    await ui.editor.click();
    await ui.page.keyboard.type("x");
    await ui.page.getByText("Cannot edit in read-only editor").first().waitFor();
  },

  "Context Size says what the next request takes (P7)": async (ui) => {
    await ui.command("Tiro: Context Size");
    await ui.page.getByText(/The next request: about [\d,]+ of 8,192 tokens/).first().waitFor();
    await ui.row(/System prompt\s*[\d,]+ tokens · \d+ %/).waitFor();
    await ui.shot("context-size");
    await ui.row("Preview Resize").waitFor();
    await ui.page.keyboard.press("Escape");
  },

  "a message has a menu (U2.8), earlier prompts come back, and Enter steers a running answer": async (ui) => {
    await ui.chooseFor(ui.answers.last(), "Pin Message");
    await ui.view.locator(".item.text.pinned").waitFor();
    await ui.shot("pinned");
    await ui.chooseFor(ui.answers.last(), "Unpin Message");
    await until(async () => (await ui.view.locator(".pinned").count()) === 0, "it is not pinned any more");
    await ui.prompt.press("ArrowUp");
    assert.equal(await ui.prompt.inputValue(), "from the palette");
    await ui.prompt.press("ArrowDown");
    await ui.prompt.fill("");
    await ui.ask("slow words");
    await ui.answers.last().filter({ hasText: "word3" }).waitFor();
    await ui.send("number it");
    await ui.command("Tiro: Context Size"); // the server is asked for it after it was told
    await ui.row(/System prompt/).waitFor();
    await ui.page.keyboard.press("Escape");
    ui.provider.finish();
    const before = await (await ui.answered("This is request")).locator(".markdown").innerText();
    await ui.chooseFor(ui.answers.last(), "Retry");
    await ui.answers.last().filter({ hasText: "This is request", hasNotText: before }).waitFor();
    await ui.idle();
    await ui.chooseFor(ui.prompts.last(), "Edit Message");
    await ui.page.locator('.tab.active[aria-label^="message.md"]').waitFor();
    await ui.editor.filter({ hasText: /^number.it$/ }).waitFor();
    await ui.typeAtEnd(" and clear");
    await ui.editor.filter({ hasText: /and.clear/ }).waitFor();
    await ui.page.keyboard.press("Control+Enter");
    await ui.prompts.last().filter({ hasText: "number it and clear" }).waitFor();
    await ui.page.locator('.tab[aria-label^="message.md"]').waitFor({ state: "detached" });
  },

  "where nothing would leave the window it is said, and no form is opened (P2)": async (ui) => {
    await ui.command("Tiro: Preview Resize");
    await ui.toast(/Nothing would leave the window: all \d+ messages would stay/).waitFor();
    await ui.shot("resize-of-nothing");
    assert.equal(await ui.page.locator('.tab[aria-label^="resize.md"]').count(), 0);
    await ui.dismissToasts();
  },

  "a resize is looked at, edited, applied and undone (P2)": async (ui) => {
    await ui.changeSettings({ "tiro.settings": { session: { resize: { max_keep_messages_count: 4 } } } });
    await ui.command("Tiro: Preview Resize");
    await ui.editor.filter({ hasText: /of\s\d+\smessages|messages\sof/ }).waitFor();
    await ui.shot("resize-preview");
    await ui.page.locator(".view-line").filter({ hasText: /^##.Summary$/ }).click();
    await ui.page.keyboard.press("End");
    await ui.page.keyboard.type("\nThey talked of greetings.");
    await ui.page.getByRole("button", { name: /^Apply/ }).first().click();
    await ui.notices(/messages left the window; [\d,]+ tokens become about [\d,]+/).waitFor();
    await ui.command("Tiro: Edit Memo and Summary");
    await ui.editor.filter({ hasText: /They\stalked\sof\sgreetings/ }).waitFor();
    await ui.dropForm("memory.md");
    await ui.changeSettings({ "tiro.settings": {} });
    await ui.notices(/messages left the window/).getByRole("button", { name: "Undo" }).click();
    await ui.notices("those of before the last resize").waitFor();
    await ui.shot("resize-undone");
  },

  "an agent is selected and shown (M6.3, M6.4)": async (ui) => {
    await ui.command("Tiro: Select Agent");
    await ui.row("build").waitFor();
    await ui.shot("select-agent");
    await ui.pick("plan");
    await ui.statusBar.filter({ hasText: "plan" }).waitFor();
    await ui.command("Tiro: Show Current Agent");
    await ui.toast("The agent is plan").waitFor();
    await ui.dismissToasts();
  },

  "a model is selected": async (ui) => {
    await ui.command("Tiro: Select Model");
    await ui.row("scripted/other").waitFor();
    await ui.shot("select-model");
    await ui.pick("scripted/other");
    await ui.statusBar.filter({ hasText: "other" }).waitFor();
    await ui.ask("who are you?");
    await ui.answered("You said: who are you?");
    assert.equal(ui.provider.requests.at(-1).model, "other");
  },

  "the status bar opens the menu": async (ui) => {
    await ui.statusBar.click();
    await ui.row("Show Session").waitFor();
    await ui.shot("menu");
    await ui.page.keyboard.press("Escape");
  },

  "Save Session says where, Clear Session empties the view (M4.2, M6.1)": async (ui) => {
    await ui.command("Tiro: Save Session");
    const toast = ui.toast("Saved as");
    await toast.waitFor();
    const [, path] = /Saved as (\S+\.json)/.exec(await toast.innerText());
    const { messages } = JSON.parse(readFileSync(path, "utf8"));
    assert.equal(messages.at(-1).role, "assistant");
    await ui.dismissToasts();
    await ui.command("Tiro: Clear Session");
    await ui.view.getByText("Ask about your code").waitFor();
    await ui.toast("The session is cleared").waitFor();
    assert.equal(await ui.view.locator(".item").count(), 0);
    await ui.dismissToasts();
    await ui.ask("in the new session");
    await ui.answered("You said: in the new session");
    assert.equal(await asHeard(ui), HEARD);
    await ui.command("Tiro: New Session");
    await ui.view.getByText("Ask about your code").waitFor();
  },

  "Load Session offers the saved ones, newest first, and brings back agent and title (B63)": async (ui) => {
    await ui.command("Tiro: Load Session");
    await ui.row("slow one").waitFor();
    await ui.shot("load-session");
    const first = await ui.page.locator(".quick-input-list .monaco-list-row").first().innerText();
    assert.match(first, /in the new session/);
    await ui.pick("slow one");
    await ui.titled("slow one").waitFor();
    await ui.answers.last().filter({ hasText: "You said: who are you?" }).waitFor();
    await ui.statusBar.filter({ hasText: "plan" }).waitFor();
    await ui.shot("loaded");
  },

  "the sessions are a tree: opened by a click, deleted and taken back (M4.5)": async (ui) => {
    await ui.page.getByRole("button", { name: "Sessions Section" }).click();
    const rows = ui.page.locator(".tree-explorer-viewlet-tree-view .monaco-list-row");
    const row = (text) => rows.filter({ hasText: text }).first();
    await row("in the new session").click();
    await ui.answers.last().filter({ hasText: "You said: in the new session" }).waitFor();
    const isCurrent = (text) => ui.page.getByRole("treeitem", { name: `Current session ${text}` }).waitFor();
    await isCurrent("in the new session");
    await ui.shot("sessions");
    await row("slow one").click();
    await ui.titled("slow one").waitFor();
    await isCurrent("slow one");
    const deleted = async () => {
      await row("in the new session").hover();
      await row("in the new session").getByRole("button", { name: "Delete Session" }).click();
      await until(async () => (await rows.filter({ hasText: "in the new session" }).count()) === 0, "it is gone");
    };
    await deleted();
    await ui.toast("is in the trash").getByRole("button", { name: "Undo" }).click();
    await row("in the new session").waitFor();
    await deleted();
    await ui.command("Notifications: Clear All Notifications");
    await ui.page.getByRole("button", { name: "Sessions Section" }).click();
  },
};

/** The view as a screen reader meets it, from top to bottom; numbers and times are left out. */
async function asHeard(ui) {
  const heard = await ui.view.locator("body").ariaSnapshot();
  return heard.replaceAll(/[\d.]+k?( tokens \()\d+/g, "N$1N");
}

/** Who speaks, and each control by its name, are heard; what has just come is in a live region. */
const HEARD = `- document:
  - log "Conversation with Tiro":
    - article "You":
      - heading "You" [level=2]
      - text: in the new session
    - article "Tiro":
      - heading "Tiro" [level=2]
      - paragraph: "You said: in the new session"
  - form "Prompt":
    - textbox "Ask Tiro"
    - text: Enter sends, Shift+Enter starts a new line, @ names a file to attach, Arrow Up brings earlier prompts back, Escape cancels the answer
    - button "Attach…"
    - 'button "Agent: build"': build
    - 'button "Model: scripted/echo"': echo
    - button "Send" [disabled]
    - 'button "Next request: N tokens (N %)"': N tokens (N %)
  - status: "Tiro: You said: in the new session"
  - alert`;
