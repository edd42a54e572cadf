/** What a lasting answer allows, in words: the server tells it as rules. */

import { DECISIONS } from "./viewMessages";
import { visible } from "./visible";

/** `key: what allow`, `… with that`, `… (in there)`. */
const RULE = /^(\w+): ([^]*) allow(?: with ([^]*?))?(?: \(in ([^]*)\))?$/;

/** A rule's parts. */
interface Parts {
  what: string;
  /** What a command is allowed to touch by it. */
  along: string | undefined;
}

const DEEDS: Readonly<Record<string, (parts: Parts) => string>> = {
  bash: ({ what, along }) => `run exactly “${what}”${along === undefined ? "" : `, with ${along}`}`,
  doom_loop: ({ what }) => `repeat ${what}`,
  edit: touching("change"),
  external_directory: touching("go outside the workspace, to"),
  glob: ({ what }) => `look for files like “${what}”`,
  grep: ({ what }) => `search for “${what}”`,
  read: touching("read"),
  write: touching("write"),
};

/** What each of these rules allows, in words. */
export function lastingWords(rules: readonly string[]): string[] {
  return [...new Set(rules.map(ruleWords))];
}

/** The sentence about the answer that lasts; "" where nothing would. */
export function lastingSentence(words: readonly string[]): string {
  return words.length === 0 ? "" : `“${DECISIONS.always}”: from now on, until this session ends, Tiro may do this without asking: ${words.join("; ")}`;
}

/** One that can be read in two ways stays as the server says it. */
function ruleWords(rule: string): string {
  const [, key = "", what = "", along, place] = RULE.exec(rule) ?? [];
  const deed = DEEDS[key];
  if (deed === undefined || rule.split(" allow").length > 2 || (along !== undefined && what.includes(" with "))) {
    return visible(rule);
  }
  return visible(`${deed({ what, along })}${place === undefined ? "" : ` in ${place}`}`);
}

/** A file or folder; or that of a command, which is then said. */
function touching(verb: string): (parts: Parts) => string {
  return ({ what, along }) => (along === undefined ? `${verb} ${what}` : `${verb} ${along} by exactly “${what}”`);
}
