import { expect, test } from "vitest";

import { initializationOptions, MIRRORED, serverCommand, serverSettings } from "../../src/config";

/** A configuration as VS Code hands it out: values that cannot be changed. */
function configuration(values: Record<string, unknown>) {
  return { get: (name: string) => freeze(values[name]) } as never;
}

test("only what the user has set is sent, so that config.yaml keeps its word", () => {
  expect(serverSettings(configuration({ model: null, "session.maxHistory": undefined }))).toEqual({});
});

test("a setting whose field was emptied is not set, too", () => {
  const emptied = Object.fromEntries(MIRRORED.map(([name]) => [name, ""]));
  expect(serverSettings(configuration({ ...emptied, settings: { agent: "plan" } }))).toEqual({ agent: "plan" });
});

test("a setting goes to its key of the config file", () => {
  const settings = serverSettings(
    configuration({
      model: "local/default",
      agent: "plan",
      "session.maxHistory": 40,
      "session.autosave": false,
      "session.resume": "new",
      "session.mode": "memo",
      "turn.maxSteps": 3,
    }),
  );
  expect(settings).toEqual({
    model: "local/default",
    agent: "plan",
    session: { max_history: 40, autosave: false, resume: "new", mode: "memo" },
    turn: { max_steps: 3 },
  });
});

test("single settings beat tiro.settings and leave its other keys alone", () => {
  const given = { session: { max_history: 7, fsync: "message" }, store: { kind: "files" } };
  const settings = serverSettings(configuration({ settings: given, "session.maxHistory": 40 }));
  expect(settings).toEqual({
    session: { max_history: 40, fsync: "message" },
    store: { kind: "files" },
  });
});

test("whether the workspace is trusted is passed on", () => {
  const options = initializationOptions(false, configuration({}));
  expect(options).toEqual({
    settings: {},
    features: { permissionRequest: true, turnEvents: true, diagnostics: true },
    workspaceTrusted: false,
  });
});

test.each([
  [undefined, []],
  [null, []],
  ["tiro serve", []],
  [["tiro", "serve"], ["tiro", "serve"]],
  [["tiro", 3], ["tiro"]],
])("a server command of %j is read as %j", (value, command) => {
  expect(serverCommand(configuration({ "server.command": value }))).toEqual(command);
});

function freeze(value: unknown): unknown {
  if (typeof value === "object" && value !== null) {
    Object.values(value).forEach(freeze);
    return Object.freeze(value);
  }
  return value;
}
