/** The size of the next request in words. */

import type { PickOf } from "./pick";
import type { ContextSize } from "./protocol";

/** What the parts of a request are called, in the order of a request. */
const PARTS: Readonly<Record<keyof ContextSize["breakdown"], string>> = {
  system: "System prompt",
  tools: "Tools",
  memo: "Memo",
  summary: "Summary",
  user: "Your messages",
  assistant: "Answers",
  toolUse: "Tool uses",
  toolResult: "Tool results",
  attachments: "Attachments",
};

/** What can be done about the size of a request. */
const REMEDIES: readonly PickOf<string>[] = [
  { label: "$(fold) Preview Resize", description: "what would leave the window", value: "tiro.previewResize" },
  { label: "$(file-zip) Compact Session", description: "all of it into the summary", value: "tiro.compactSession" },
  { label: "$(note) Edit Memo and Summary", description: "", value: "tiro.editMemory" },
  { label: "$(json) Explain Next Request", description: "exactly what is sent", value: "tiro.explainRequest" },
];

/** What becomes of a session that is larger than what its model takes: it is not sent like that. */
const MAKES_ROOM = "the next prompt makes room";

/** `1.2k tokens (4 %)`, or what of it is known. */
export function tokensText(size: ContextSize | undefined): string {
  if (size === undefined) {
    return "";
  }
  return `${shortNumber(size.tokens)} tokens${shareText(size)}`;
}

/** The same in a sentence, for a tooltip and for whoever listens; "" where nothing is known. */
export function tokensSentence(size: ContextSize | undefined): string {
  if (size === undefined) {
    return "";
  }
  return isOver(size) ? `${tokensText(size)}: ${MAKES_ROOM}` : `Next request: ${tokensText(size)}`;
}

/** Both, for what stands around the transcript. */
export function tokensTexts(size: ContextSize | undefined) {
  return { tokens: tokensText(size), tokensSentence: tokensSentence(size) };
}

/** The size of the next request, with the error of the estimate as far as it is known. */
export function contextSizeText(size: ContextSize): string {
  const error = size.errorPercent === null ? "" : `, ±${Math.round(size.errorPercent)} %`;
  const tokens = `about ${size.tokens.toLocaleString("en")}`;
  const limit = size.contextWindow?.toLocaleString("en");
  if (isOver(size)) {
    return `The session: ${tokens} tokens${error}, over the limit of ${limit ?? ""}: ${MAKES_ROOM}`;
  }
  return `The next request: ${tokens}${limit === undefined ? "" : ` of ${limit}`} tokens${error}`;
}

/** How far the estimate can be trusted. */
export function contextSizeHint({ errorPercent }: ContextSize): string {
  return errorPercent === null
    ? "An estimate, which no report of this model has corrected yet; the largest part first"
    : `Estimates for this model were ${Math.round(errorPercent)} % off lately; the largest part first`;
}

/** The parts of the next request, the largest first, and what can be done about it. */
export function contextSizePicks({ tokens, breakdown }: ContextSize): PickOf<string>[] {
  const parts = Object.entries(PARTS)
    .map(([key, label]) => ({ label, size: breakdown[key as keyof ContextSize["breakdown"]] }))
    .filter(({ size }) => size > 0)
    .sort((one, other) => other.size - one.size)
    .map(({ label, size }) => ({
      label,
      description: `${size.toLocaleString("en")} tokens · ${Math.round((100 * size) / tokens)} %`,
      value: "",
    }));
  return [...parts, ...REMEDIES];
}

function isOver({ ratio }: ContextSize): boolean {
  return ratio !== null && ratio > 1;
}

function shareText(size: ContextSize): string {
  if (size.ratio === null) {
    return "";
  }
  return isOver(size) ? " (over the limit)" : ` (${Math.round(size.ratio * 100)} %)`;
}

/** Tokens as short as the status bar needs them. */
export function shortNumber(value: number): string {
  const [unit, sign] = value < 999_950 ? [1_000, "k"] : [1_000_000, "M"];
  return value < 1_000 ? String(value) : `${(value / unit).toFixed(1)}${sign}`;
}
