import { expect, test } from "vitest";

import { settingOf } from "../../src/serverMessages";

test.each([
  ["session.max_history", ["session.maxHistory"], "tiro.session.maxHistory"],
  ["session.max_history", [], "tiro.settings"],
  ["model", ["model"], "tiro.model"],
  ["session.foo", ["session.maxHistory"], "tiro.settings"],
])("the way to the wrong key %s, where %j are set, is %s", (key, set, setting) => {
  expect(settingOf(key, (name) => set.includes(name))).toBe(setting);
});
