/** Where the reader is: one at the end is taken along when more arrives, any other stays. */

/** So near to the end counts as at the end. */
const END_SLACK_PX = 24;

export class Follow {
  #isAtEnd = true;
  /** Where the page was when it was last looked at. */
  #lastTop = 0;

  /** `jump` is the button that leads to the end; `content` is what grows. */
  constructor(
    private readonly scroller: HTMLElement,
    content: HTMLElement,
    private readonly jump: HTMLElement,
  ) {
    scroller.addEventListener("scroll", () => {
      this.#read();
    });
    const sizes = new ResizeObserver(() => {
      this.keep();
    });
    sizes.observe(scroller);
    sizes.observe(content);
  }

  /** The position is read first: the reader may have moved since the last event. */
  keep(): void {
    this.#read();
    if (this.#isAtEnd) {
      this.goToEnd();
    }
  }

  goToEnd(): void {
    this.#isAtEnd = true;
    this.scroller.scrollTop = this.scroller.scrollHeight;
    this.#lastTop = this.scroller.scrollTop;
    this.jump.hidden = true;
  }

  /** Only the reader moves up; text that grows below does not. */
  #read(): void {
    const below = this.scroller.scrollHeight - this.scroller.scrollTop - this.scroller.clientHeight;
    if (below <= END_SLACK_PX) {
      this.#isAtEnd = true;
    } else if (this.scroller.scrollTop < this.#lastTop) {
      this.#isAtEnd = false;
    }
    this.#lastTop = this.scroller.scrollTop;
    this.jump.hidden = this.#isAtEnd;
  }
}
