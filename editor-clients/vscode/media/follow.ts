/**
 * Where the reader is: one at the end is taken along when more arrives, any other stays; and one who
 * comes near to an end of what is painted is told about.
 */

/** So near to the end counts as at the end. */
const END_SLACK_PX = 24;

/** The page around the reader. */
export interface Place {
  scroller: HTMLElement;
  /** What grows. */
  content: HTMLElement;
  /** The button that leads to the end. */
  jump: HTMLElement;
  /** Whether the last thing painted is the last there is. */
  isWhole: () => boolean;
  /** Paint the end. */
  paintEnd: () => void;
  /** The reader is less than a screen away from what is not painted, if there is any. */
  near: (edge: "top" | "bottom") => void;
}

export class Follow {
  #isAtEnd = true;
  /** Where the page was when it was last looked at. */
  #lastTop = 0;

  constructor(private readonly place: Place) {
    const { scroller, content } = place;
    scroller.addEventListener("scroll", () => {
      this.look();
    });
    const sizes = new ResizeObserver(() => {
      this.keep();
      this.look();
    });
    sizes.observe(scroller);
    sizes.observe(content);
  }

  get isAtEnd(): boolean {
    return this.#isAtEnd;
  }

  /** The position is read first: the reader may have moved since the last event. */
  keep(): void {
    this.#read();
    if (this.#isAtEnd) {
      this.goToEnd();
    }
  }

  goToEnd(): void {
    const { scroller, jump, paintEnd } = this.place;
    paintEnd();
    this.#setAtEnd(true);
    scroller.scrollTop = scroller.scrollHeight;
    this.#lastTop = scroller.scrollTop;
    jump.hidden = true;
  }

  /** Lead the reader to something that is painted. */
  goTo(element: HTMLElement): void {
    this.#setAtEnd(false);
    element.scrollIntoView({ block: "start" });
    this.#lastTop = this.place.scroller.scrollTop;
    this.look();
  }

  /** Read where the reader is now, and tell when an end is near. */
  look(): void {
    const below = this.#read();
    const { scroller, near } = this.place;
    if (scroller.scrollTop < scroller.clientHeight) {
      near("top");
    }
    if (below < scroller.clientHeight) {
      near("bottom");
    }
  }

  /** Change what is above or below; what the reader looks at stays where it is. */
  hold(change: () => void): void {
    const { scroller, content } = this.place;
    const top = scroller.getBoundingClientRect().top;
    const seen = [...content.children].find((one) => one.getBoundingClientRect().bottom > top);
    const before = seen?.getBoundingClientRect().top ?? 0;
    change();
    scroller.scrollTop += (seen?.getBoundingClientRect().top ?? 0) - before;
    this.#lastTop = scroller.scrollTop;
  }

  /** Only the reader moves up; text that grows below does not. */
  #read(): number {
    const { scroller, jump, isWhole } = this.place;
    const below = scroller.scrollHeight - scroller.scrollTop - scroller.clientHeight;
    if (below <= END_SLACK_PX && isWhole()) {
      this.#setAtEnd(true);
    } else if (scroller.scrollTop < this.#lastTop) {
      this.#setAtEnd(false);
    }
    this.#lastTop = scroller.scrollTop;
    jump.hidden = this.#isAtEnd;
    return below;
  }
  /** The browser moves the page for who reads in the middle of it; at the end that would look like the reader. */
  #setAtEnd(isAtEnd: boolean): void {
    this.#isAtEnd = isAtEnd;
    this.place.scroller.style.setProperty("overflow-anchor", isAtEnd ? "none" : "auto");
  }
}
