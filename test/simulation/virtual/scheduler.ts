/** What happens at a time. */
interface Happening {
  readonly at: number;
  /** Orders what happens at the same time. */
  readonly order: number;
  run: (() => void) | undefined;
}

/** Node's own: the worlds have another one. */
const later = setImmediate;

/** Number of steps in one turn of the event loop: a turn of its own for each would take longer than many of them. */
const STEPS_A_TURN = 50;

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
  run(end: number, isOver: () => boolean): Promise<void> {
    return new Promise((resolve, reject) => {
      let hasEnded = false;
      // Between two of these callbacks, Node runs what waits for the next tick, and all microtasks.
      const step = (): void => {
        if (hasEnded) return;
        try {
          hasEnded = !this.#step(end, isOver);
          if (hasEnded) resolve();
        } catch (error) {
          hasEnded = true;
          reject(error);
        }
      };
      const turn = (): void => {
        if (hasEnded) return;
        for (let i = 0; i < STEPS_A_TURN; i += 1) later(step);
        later(turn);
      };
      turn();
    });
  }

  /** Runs the next step. Returns whether there was one to run. */
  #step(end: number, isOver: () => boolean): boolean {
    let next = this.#heap[0];
    // Canceled ones.
    for (; next && !next.run; next = this.#heap[0]) this.#pop();
    if (!next?.run || next.at > end || isOver()) return false;
    this.#pop();
    this.now = next.at;
    this.steps += 1;
    next.run();
    return true;
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
