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
