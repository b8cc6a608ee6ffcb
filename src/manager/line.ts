/** What can stand in a {@link Line}, which alone sets these. */
export interface Linked<T> {
  before: T | undefined;
  behind: T | undefined;
}

/**
 * First come, first served, where anybody may leave at any time. Each step costs the same, however many there are; a `Set`
 * would pass over all that left its head, each time anew.
 */
export class Line<T extends Linked<T>> {
  #first: T | undefined;
  #last: T | undefined;

  get first(): T | undefined {
    return this.#first;
  }

  add(one: T): void {
    one.before = this.#last;
    if (this.#last) this.#last.behind = one;
    else this.#first = one;
    this.#last = one;
  }

  /** @param one stands in this line */
  remove(one: T): void {
    const { before, behind } = one;
    if (before) before.behind = behind;
    else this.#first = behind;
    if (behind) behind.before = before;
    else this.#last = before;
    one.before = undefined;
    one.behind = undefined;
  }
}
