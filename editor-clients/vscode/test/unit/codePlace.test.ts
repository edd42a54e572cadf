import { expect, test } from "vitest";

import { withCode } from "../../src/codePlace";

const PY = "import os\n\n\ndef one():\n    return 1\n\n\ndef two():\n    if True:\n\n        return 2\n\n\nprint(two())\n";

test("a definition that stands in the text once is replaced, with what is indented below it", () => {
  expect(withCode(PY, "def two():\n    return 22\n")).toBe(
    "import os\n\n\ndef one():\n    return 1\n\n\ndef two():\n    return 22\n\n\nprint(two())\n",
  );
});

test("a closing bracket belongs to it, and so does its depth and the text's line ends", () => {
  const js = "class A {\r\n  f() {\r\n    return 1;\r\n  }\r\n\r\n  g() {\r\n    return 2;\r\n  }\r\n}\r\n";
  expect(withCode(js, "f() {\n  return 3;\n}\n")).toBe(js.replace("return 1;", "return 3;"));
});

test.each([
  ["stands there twice", "f {\n  1\n}\nf {\n  2\n}\n", "f {\n  3\n}\n"],
  ["is more than one definition", PY, "def two():\n    return 2\n\nprint(1)\n"],
  ["is not there", PY, "def three():\n    return 3\n"],
])("code that %s is refused: it is never taken for the whole file", (_name, text, code) => {
  expect(() => withCode(text, code)).toThrow("select what it replaces");
});

test("an empty file may be filled whole", () => {
  expect(withCode("", "import os\nprint(1)\n")).toBe("import os\nprint(1)\n");
  expect(withCode("\n\n", "x = 1")).toBe("x = 1\n");
});

const LED = "import os\n\n# of the first\n@cache(\n    size=1,\n)\n@other\ndef one():\n    return 1\n# of two\ndef two():\n    return 2\n";

test.each([
  ["a decorator takes the place of those that stand there", "@cache(size=2)\ndef one():\n    return 11\n", LED.replace(/@cache[^]*return 1\n/, "@cache(size=2)\ndef one():\n    return 11\n")],
  ["none leaves them as they are", "def one():\n    return 11\n", LED.replace("return 1\n", "return 11\n")],
  ["a comment takes the place of the one there", "# of 2\n# now\ndef two():\n    return 22\n", LED.replace("# of two\ndef two():\n    return 2\n", "# of 2\n# now\ndef two():\n    return 22\n")],
  ["both go with both", "# mine\n@cache\ndef one():\n    return 1\n", LED.replace(/# of the first[^]*return 1\n/, "# mine\n@cache\ndef one():\n    return 1\n")],
  ["a comment where there was none is put there", "# f.py\ndef two():\n    return 2\n", LED.replace("# of two", "# f.py")],
])("before a definition %s", (_name, code, text) => {
  expect(withCode(LED, code)).toBe(text);
});

test("a diff is applied, and one that does not fit is refused", () => {
  const diff = "--- a/f.py\n+++ b/f.py\n@@ -4,2 +4,2 @@ import os\n def one():\n-    return 1\n+    return 11\n";
  expect(withCode(PY, diff)).toBe(PY.replace("return 1\n", "return 11\n"));
  expect(() => withCode("else\n", diff)).toThrow("does not fit");
});
