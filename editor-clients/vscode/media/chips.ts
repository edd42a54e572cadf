/** The attachments of the next prompt, as buttons above the input. */

import type { Chip, FromView } from "../src/viewMessages";
import { make } from "./dom";

/** Show these chips; a click removes one, or switches the selection off and on. */
export function showChips(root: HTMLElement, chips: readonly Chip[], post: (message: FromView) => void): void {
  root.replaceChildren(...chips.map((chip) => chipItem(chip, post)));
}

function chipItem(chip: Chip, post: (message: FromView) => void): HTMLElement {
  const item = make("li", "");
  const button = make("button", "chip", chip.label);
  button.setAttribute("type", "button");
  if (chip.isSelection) {
    button.setAttribute("aria-pressed", String(chip.isOn));
    button.title = chip.isOn ? "The selection goes along" : "The selection does not go along";
  } else {
    button.title = "Remove";
    button.setAttribute("aria-label", `Remove attachment ${chip.label}`);
    button.classList.add("removable");
  }
  button.addEventListener("click", () => {
    post(chip.isSelection ? { type: "toggleSelection" } : { type: "removeChip", id: chip.id });
  });
  item.append(button);
  return item;
}
