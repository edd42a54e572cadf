// The steps of a user's day, in order: each needs the ones before it.
import assert from "node:assert/strict";

import { ANSWERS } from "./answers.mjs";
import { EDITS } from "./edits.mjs";
import { HANDOFF } from "./handoff.mjs";
import { LOOKS } from "./looks.mjs";
import { PEER } from "./peer.mjs";
import { PROMPTS } from "./prompts.mjs";
import { QUESTIONS } from "./questions.mjs";
import { READING } from "./reading.mjs";
import { SESSION } from "./session.mjs";

export const STEPS = {
  ...ANSWERS,
  ...QUESTIONS,
  ...EDITS,
  ...PROMPTS,
  ...SESSION,
  ...READING,
  ...LOOKS,
  ...HANDOFF,
  ...PEER,

  "nothing left the machine, and the page broke none of its rules": (ui) => {
    assert.deepEqual([...ui.foreignHosts], []);
    assert.deepEqual(ui.complaints, []);
  },
};
