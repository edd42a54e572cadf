/** Colours for code, by highlight.js with the languages that are asked about most. */

import hljs from "highlight.js/lib/core";
import bash from "highlight.js/lib/languages/bash";
import c from "highlight.js/lib/languages/c";
import cpp from "highlight.js/lib/languages/cpp";
import css from "highlight.js/lib/languages/css";
import diff from "highlight.js/lib/languages/diff";
import go from "highlight.js/lib/languages/go";
import ini from "highlight.js/lib/languages/ini";
import java from "highlight.js/lib/languages/java";
import javascript from "highlight.js/lib/languages/javascript";
import json from "highlight.js/lib/languages/json";
import lisp from "highlight.js/lib/languages/lisp";
import markdown from "highlight.js/lib/languages/markdown";
import python from "highlight.js/lib/languages/python";
import rust from "highlight.js/lib/languages/rust";
import shell from "highlight.js/lib/languages/shell";
import sql from "highlight.js/lib/languages/sql";
import typescript from "highlight.js/lib/languages/typescript";
import xml from "highlight.js/lib/languages/xml";
import yaml from "highlight.js/lib/languages/yaml";

const LANGUAGES = {
  bash, c, cpp, css, diff, go, ini, java, javascript, json, lisp, markdown, python, rust, shell, sql, typescript, xml, yaml,
};

for (const [name, language] of Object.entries(LANGUAGES)) {
  hljs.registerLanguage(name, language);
}
hljs.registerAliases(["elisp", "emacs-lisp", "scheme", "clojure"], { languageName: "lisp" });

/** Whether code in this language can be coloured. */
export function hasColours(language: string): boolean {
  return hljs.getLanguage(language) !== undefined;
}

/** Colour an element's text; one in a language that is not known stays as it is. */
export function highlight(code: Element, language: string): void {
  const text = code.textContent;
  if (!hasColours(language)) {
    return;
  }
  // The library escapes the text, and the page's policy runs no script of it; that it is still the
  // same text is looked at all the same.
  const template = document.createElement("template");
  template.innerHTML = hljs.highlight(text, { language, ignoreIllegals: true }).value;
  if (template.content.textContent === text) {
    code.replaceChildren(template.content);
  }
}
