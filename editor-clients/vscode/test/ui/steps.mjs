// The steps of a user's day, in order.

export const STEPS = {
  "the window opens, and the status bar says who would answer": async (ui) => {
    await ui.open();
    await ui.statusBar.filter({ hasText: "build" }).filter({ hasText: "echo" }).waitFor();
  },

  "the view opens from the activity bar, with the cursor ready": async (ui) => {
    await ui.openView();
    await ui.shot("empty");
  },

  "an answer streams into the view": async (ui) => {
    await ui.ask("hello there");
    await ui.answered("You said: hello there");
    await ui.shot("answer");
  },
};
