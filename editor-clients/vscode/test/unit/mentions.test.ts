import { expect, test } from "vitest";

import { globFor, ranked } from "../../src/mentions";

test("a file whose name begins with the letters comes before one that has them elsewhere", () => {
  const paths = ["/w/lib/data.py", "/w/ab/x.py", "/w/src/About.md", "/w/cab.py", "/w/src/About.md"];
  const relative = (path: string) => path.slice("/w/".length);
  expect(ranked(paths, "ab", relative).map(({ name, detail }) => [name, detail])).toEqual([
    ["About.md", "src"],
    ["cab.py", ""],
    ["x.py", "ab"],
  ]);
  expect(ranked(paths, "src/a", relative).map(({ value }) => value)).toEqual(["/w/src/About.md"]);
});

test("the search takes either case, and no letter as a pattern", () => {
  expect(globFor("a-1/.x")).toBe("**/*[aA][-][1]/[.][xX]*");
});
