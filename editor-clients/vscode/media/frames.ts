/** Work that is done in steps, each short: so many in a frame as it has time for, first come, first served. */

const FRAME_MS = 8;

/** One step; whether there is another one. */
export type Step = () => boolean;

export class Frames {
  readonly #steps: Step[] = [];
  #isAsked = false;

  add(step: Step): void {
    this.#steps.push(step);
    this.#ask();
  }

  #ask(): void {
    if (!this.#isAsked) {
      this.#isAsked = true;
      requestAnimationFrame(() => {
        this.#isAsked = false;
        this.#work();
      });
    }
  }

  #work(): void {
    const end = performance.now() + FRAME_MS;
    do {
      const step = this.#steps.shift();
      if (step?.() === true) {
        this.#steps.push(step);
      }
    } while (this.#steps.length > 0 && performance.now() < end);
    if (this.#steps.length > 0) {
      this.#ask();
    }
  }
}
