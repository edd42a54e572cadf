/** How turns ended, as the window keeps it. */

import { expect, test } from "vitest";

import { Endings } from "../../src/endings";

function memory() {
  const kept = new Map<string, unknown>();
  return {
    get: (key: string) => kept.get(key) as never,
    update: (key: string, value: unknown) => {
      kept.set(key, JSON.parse(JSON.stringify(value)));
      return Promise.resolve();
    },
  };
}

const ended = (after: number, text = "Cancelled") => ({ after, level: "info" as const, text, actions: [] });

test("each session has its own, and they are there for the next window", () => {
  const place = memory();
  new Endings(place).keep("a", [ended(2)]);
  new Endings(place).keep("b", [ended(4), ended(6)]);
  new Endings(place).keep("a", [ended(2), ended(8)]);
  new Endings(place).keep(null, [ended(9)]);
  const again = new Endings(place);
  expect([again.of("a"), again.of("b"), again.of("c"), again.of(null)].map((all) => all.map(({ after }) => after))).toEqual([
    [2, 8],
    [4, 6],
    [],
    [],
  ]);
});

test("the newest hundred are kept", () => {
  const endings = new Endings(memory());
  endings.keep("old", [ended(1)]);
  endings.keep("new", Array.from({ length: 120 }, (_, index) => ended(index)));
  expect(endings.of("old")).toEqual([]);
  expect(endings.of("new").map(({ after }) => after)).toEqual(Array.from({ length: 100 }, (_, index) => index + 20));
});
