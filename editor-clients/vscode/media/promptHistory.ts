/** Earlier prompts come back with Arrow Up at the start of the input, and go again with Arrow Down at its end. */

export class PromptHistory {
  /** How many prompts back the input is; 0 is what is being written. */
  #back = 0;
  #draft = "";

  constructor(
    private readonly input: HTMLTextAreaElement,
    private readonly prompts: () => string[],
  ) {}

  /** Whether the key changed what the input shows. */
  move(key: string): boolean {
    const { selectionStart, selectionEnd, value } = this.input;
    if (selectionStart !== selectionEnd) {
      return false;
    }
    if (key === "ArrowUp" && selectionStart === 0) {
      return this.#show(this.#back + 1, 0);
    }
    return key === "ArrowDown" && selectionStart === value.length && this.#show(this.#back - 1, Infinity);
  }

  /** The prompt was sent: the next Arrow Up begins at the newest. */
  forget(): void {
    this.#back = 0;
    this.#draft = "";
  }

  #show(back: number, caret: number): boolean {
    const prompts = this.prompts();
    if (back < 0 || back > prompts.length) {
      return false;
    }
    if (this.#back === 0) {
      this.#draft = this.input.value;
    }
    this.#back = back;
    this.input.value = back === 0 ? this.#draft : (prompts.at(-back) ?? "");
    const place = Math.min(caret, this.input.value.length);
    this.input.setSelectionRange(place, place);
    return true;
  }
}
