// One person, two editors: asked in the workbench, gone on in Emacs, and back (P4, U9.8).
import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";

import { until } from "../workbench.mjs";
import { Emacs } from "./emacs.mjs";

export const HANDOFF = {
  "what is asked here goes on in Emacs, what is asked there is here, and one waits for the other (P4, U9.8)": async (ui) => {
    const said = (text) => ui.view.locator(".item").filter({ hasText: text });
    const folder = `${ui.bench.out}/tiro/sessions`;
    const emacs = new Emacs(ui.bench.out);
    const opening = emacs.open(); // meanwhile
    try {
      await ui.closeEditors(); // no selection goes along
      await ui.command("Tiro: New Session");
      await ui.view.getByText("Ask about your code").waitFor();
      const before = readdirSync(folder);
      await ui.ask("asked in the workbench");
      await ui.answered("You said: asked in the workbench");
      await opening;
      await emacs.does("(tiro-resume-session)");
      const resumed = /You: asked in the workbench[^]*You said: asked in the workbench/;
      await until(async () => resumed.test(await emacs.chat()), "Emacs shows it");
      await ui.prompt.fill("half a thought");
      await emacs.ask("asked in Emacs");
      await said("You said: asked in Emacs").waitFor();
      await ui.notices("changed by another program").waitFor();
      assert.equal(await ui.prompt.inputValue(), "half a thought");
      await ui.shot("from-emacs");
      await ui.ask("and back again");
      await ui.answered("You said: and back again");
      await until(async () => (await emacs.chat()).includes("You said: and back again"), "Emacs shows it");
      const chat = await emacs.chat();
      for (const prompt of ["asked in the workbench", "asked in Emacs", "and back again"]) {
        assert.equal(chat.split(`You: ${prompt}`).length, 2, `Emacs shows "${prompt}" once`);
        assert.equal(await said(`You said: ${prompt}`).count(), 1, `"${prompt}" is answered once`);
        assert.equal(await ui.prompts.filter({ hasText: prompt }).count(), 1, `"${prompt}" is asked once`);
      }
      const sent = ui.provider.requests.at(-1).messages.filter(({ role }) => role === "user");
      assert.deepEqual(sent.map(({ content }) => content), ["asked in the workbench", "asked in Emacs", "and back again"]);
      await ui.command("Tiro: Save Session");
      await ui.toast("Saved as").waitFor();
      await ui.dismissToasts();
      const made = readdirSync(folder).filter((name) => name.endsWith(".json") && !before.includes(name));
      assert.equal(made.length, 1, `one file: ${made.join(" ")}`);
      const { messages } = JSON.parse(readFileSync(`${folder}/${made[0]}`, "utf8"));
      assert.deepEqual(messages.map(({ role }) => role), Array.from({ length: 3 }, () => ["user", "assistant"]).flat());
      await emacs.does('(tiro-ask "slow in Emacs")');
      await until(() => ui.provider.requests.at(-1).messages.at(-1).content === "slow in Emacs", "it answers");
      await ui.send("meanwhile");
      await ui.notices("Another process").filter({ hasText: "is answering in this session right now" }).waitFor();
      assert.equal(await ui.prompt.inputValue(), "meanwhile");
      await emacs.does("(tiro-cancel)");
      await emacs.idle();
      await ui.prompts.filter({ hasText: "slow in Emacs" }).waitFor();
      await ui.prompt.press("Enter");
      await ui.answered("You said: meanwhile");
    } finally {
      await emacs.close();
    }
  },
};
