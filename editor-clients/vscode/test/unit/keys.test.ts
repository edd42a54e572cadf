/** API keys: where they lie, and which variables may not be set that way (U9.11). */

import { expect, test } from "vitest";

import { Keys, variableProblem } from "../../src/keys";
import { versionProblem } from "../../src/version";

function stores() {
  const [secrets, state] = [new Map<string, string>(), new Map<string, unknown>()];
  const secretStorage = {
    get: (name: string) => Promise.resolve(secrets.get(name)),
    store: (name: string, value: string) => Promise.resolve(void secrets.set(name, value)),
    delete: (name: string) => Promise.resolve(void secrets.delete(name)),
  };
  const memento = {
    get: (name: string) => state.get(name),
    update: (name: string, value: unknown) => Promise.resolve(void state.set(name, value)),
  };
  return { keys: new Keys(secretStorage as never, memento as never), secrets, state };
}

test("a key is in the secret storage and in the environment, its name alone in the state", async () => {
  const { keys, secrets, state } = stores();
  await keys.set("OPENAI_API_KEY", "sk-1");
  await keys.set("WORK_API_KEY", "sk-2");
  expect(await keys.environment()).toEqual({ OPENAI_API_KEY: "sk-1", WORK_API_KEY: "sk-2" });
  expect([...secrets.values()]).toEqual(["sk-1", "sk-2"]);
  expect(JSON.stringify([...state])).not.toContain("sk-");
});

test("a key that is forgotten is nowhere any more", async () => {
  const { keys, secrets } = stores();
  await keys.set("OPENAI_API_KEY", "sk-1");
  await keys.remove("OPENAI_API_KEY");
  expect(await keys.environment()).toEqual({});
  expect(keys.known).toEqual([]);
  expect(secrets.size).toBe(0);
});

test.each([
  ["WORK_API_KEY", true],
  ["KEY2", true],
  ["work-key", false],
  ["", false],
  ["PATH", false],
  ["LD_PRELOAD", false],
  ["PYTHONPATH", false],
])("whether %j may be the variable of a key: %s", (name, may) => {
  expect(variableProblem(name) === undefined).toBe(may);
});

test.each([
  [1, undefined],
  [2, /update the extension/],
  [0, /update the server/],
])("a server that speaks version %i of the protocol", (protocolVersion, problem) => {
  const found = versionProblem({ protocolVersion, serverVersion: "9.9", methods: [], resume: null } as never);
  expect(found ?? "").toMatch(problem ?? /^$/);
});

test("a program that is no Tiro server is said to be none", () => {
  expect(versionProblem(undefined)).toMatch(/no Tiro server/);
});
