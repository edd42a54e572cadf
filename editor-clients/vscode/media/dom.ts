/** Making and finding elements. */

/** A new element; text only ever becomes a text node. */
export function make(tag: string, className: string, text?: string): HTMLElement {
  const element = document.createElement(tag);
  if (className !== "") {
    element.className = className;
  }
  if (text !== undefined) {
    element.textContent = text;
  }
  return element;
}

/** A button that does something. */
export function makeButton(label: string, action: () => void): HTMLButtonElement {
  const button = document.createElement("button");
  button.type = "button";
  button.textContent = label;
  button.addEventListener("click", action);
  return button;
}

/** An element that the page has from the start. */
export function byId(id: string): HTMLElement {
  const element = document.getElementById(id);
  if (element === null) {
    throw new Error(`The page has no element ${id}`);
  }
  return element;
}

/** A line of a diff, in its colour. */
export function makeDiffLine(line: string): HTMLElement {
  const kind = { "+": "added", "-": "removed", "@": "place" }[line.charAt(0)];
  return make("div", kind ?? "", line === "" ? "\n" : line);
}

/** What a button says, shortly and in a sentence; one that says nothing is hidden. */
export function label(button: HTMLElement, text: string, meaning: string): void {
  button.textContent = text;
  button.hidden = text === "";
  button.title = meaning;
  button.setAttribute("aria-label", meaning);
}
