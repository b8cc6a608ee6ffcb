/** What happens at a time. */
interface Happening {
  readonly at: number;
  /** Orders what happens at the same time. */
  readonly order: number;
  run: (() => void) | undefined;
}

/** Resolves when everything that a step has caused in this turn has run: microtasks, and what waits for the next tick. */
const settled = (
  (later) => () =>
    new Promise<void>((resolve) => void later(resolve))
)(setImmediate);

/** Virtual time, in milliseconds: it jumps from one step to the next. */
export class Scheduler {
  now = 0;
  /** Number of steps so far. */
  steps = 0;
  #order = 0;
  /** A binary heap. */
  readonly #heap: Happening[] = [];

  /** Runs `step` after `ms` milliseconds. Returns a function that cancels that. */
  after(ms: number, step: () => void): () => void {
    const happening: Happening = { at: this.now + Math.max(ms, 0), order: this.#order, run: step };
    this.#order += 1;
    this.#push(happening);
    return () => {
      happening.run = undefined;
    };
  }

  /**
   * Runs all steps until there are no more, or `isOver` returns true, or virtual time has reached `end`. Each step runs when everything
   * that the previous one has caused has run.
   */
  async run(end: number, isOver: () => boolean): Promise<void> {
    await settled();
    for (let next = this.#heap[0]; next && next.at <= end && !isOver(); next = this.#heap[0]) {
      this.#pop();
      if (!next.run) continue;
      this.now = next.at;
      this.steps += 1;
      next.run();
      await settled();
    }
  }

  #push(happening: Happening): void {
    const heap = this.#heap;
    let at = heap.push(happening) - 1;
    while (at > 0) {
      const parent = (at - 1) >> 1;
      const above = heap[parent];
      if (!above || isBefore(above, happening)) break;
      heap[at] = above;
      at = parent;
    }
    heap[at] = happening;
  }

  #pop(): void {
    const heap = this.#heap;
    const last = heap.pop();
    if (!last || heap.length === 0) return;
    let at = 0;
    for (;;) {
      let child = 2 * at + 1;
      const [left, right] = [heap[child], heap[child + 1]];
      let least = left;
      if (left && right && isBefore(right, left)) {
        least = right;
        child += 1;
      }
      if (!least || isBefore(last, least)) break;
      heap[at] = least;
      at = child;
    }
    heap[at] = last;
  }
}

const isBefore = (one: Happening, other: Happening): boolean =>
  one.at < other.at || (one.at === other.at && one.order < other.order);
