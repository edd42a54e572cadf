/** The size of the next request in words. */

import type { ContextSize } from "./protocol";

/** `1.2k tokens (4 %)`, or what of it is known. */
export function tokensText(size: ContextSize | undefined): string {
  if (size === undefined) {
    return "";
  }
  const percent = size.ratio === null ? "" : ` (${Math.round(size.ratio * 100)} %)`;
  return `${shortNumber(size.tokens)} tokens${percent}`;
}

/** One sentence with the estimate, its error, and its parts from the largest down. */
export function contextSizeText(size: ContextSize): string {
  const window =
    size.contextWindow === null ? "" : ` of ${size.contextWindow.toLocaleString("en")}`;
  const error = size.errorPercent === null ? "" : `, ±${Math.round(size.errorPercent)} %`;
  const parts = Object.entries<number>({ ...size.breakdown })
    .filter(([, tokens]) => tokens > 0)
    .sort(([, one], [, other]) => other - one)
    .map(([name, tokens]) => `${name} ${tokens.toLocaleString("en")}`);
  const total = `The next request takes about ${size.tokens.toLocaleString("en")}${window} tokens`;
  return `${total}${error}${parts.length > 0 ? `: ${parts.join(", ")}` : ""}`;
}

function shortNumber(value: number): string {
  return value < 1_000 ? String(value) : `${(value / 1_000).toFixed(1)}k`;
}
