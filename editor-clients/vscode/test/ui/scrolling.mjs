// A long session, and a reader who scrolls through it.
import { writeFileSync } from "node:fs";

const CODE = "```py\ndef greet(name):\n    print(name)  # said\n```\n";
const LIST = "- one *item*\n  - one in it\n    1. and `one` in that\n- [x] done\n\n";
const TABLE = `| name | what it is | how many |\n|---|---|--:|\n${"| `a` | some **words** about it | 3 |\n".repeat(8)}\n`;

/** Save a session of so many messages under the name "long"; every fifth holds lists, tables and code. */
export function writeLongSession(out, count) {
  const messages = Array.from({ length: count }, (_, index) => ({
    role: index % 2 === 0 ? "user" : "assistant",
    content: `message ${index + 1}\n\n${index % 5 === 4 ? LIST + TABLE + CODE.repeat(3) : CODE.repeat(index % 3)}`,
  }));
  const session = { id: "long", messages, timestamp: "2025-02-21T14:30:15-0800" };
  writeFileSync(`${out}/tiro/sessions/long.json`, JSON.stringify(session));
}

/**
 * Scroll up, frame by frame, until the first message is there; runs in the page. What comes of it: the
 * items that moved under the reader, how many were on the page at most, and how long the frames took.
 */
export async function scrollToFirst(element, patienceMs) {
  const seen = () => {
    const top = element.getBoundingClientRect().top;
    return [...element.querySelectorAll(".item")].find((item) => item.getBoundingClientRect().bottom > top);
  };
  const frame = () => new Promise((resolve) => globalThis.requestAnimationFrame(resolve));
  const [moved, frames] = [[], []];
  let most = 0;
  let last = await frame();
  const end = last + patienceMs;
  while (last < end && !element.querySelector(".item")?.textContent.trim().endsWith("message 1")) {
    element.scrollTop -= 700;
    const [item, place] = [seen(), seen()?.getBoundingClientRect().top];
    const now = await frame();
    if (Math.abs(item.getBoundingClientRect().top - place) > 60) {
      moved.push(item.textContent);
    }
    most = Math.max(most, element.querySelectorAll(".item").length);
    frames.push(now - last);
    last = now;
  }
  return { moved, most, frames, slowest: Math.round(Math.max(...frames)) };
}
