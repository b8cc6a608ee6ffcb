import type { Clock } from '../../src/base/time.ts';

interface Timer {
  readonly at: number;
  readonly fn: () => void;
}

/** A clock whose time passes only when a test calls `advance()`. */
export class ManualClock implements Clock {
  readonly #timers = new Set<Timer>();
  #now: number;

  /** @param now milliseconds since the epoch; by default a whole second, long ago */
  constructor(now = 1_000_000_000_000) {
    this.#now = now;
  }

  /** Timers that have neither fired nor been cancelled. */
  get outstanding(): number {
    return this.#timers.size;
  }

  now(): number {
    return this.#now;
  }

  after(ms: number, fn: () => void): () => void {
    if (!(ms >= 0)) throw new RangeError(`a timer of ${ms} ms`);
    const timer = { at: this.#now + ms, fn };
    this.#timers.add(timer);
    return () => {
      this.#timers.delete(timer);
    };
  }

  /** Advances the time by `ms` milliseconds and fires each timer at its time, including timers that fired ones set. */
  advance(ms: number): void {
    const end = this.#now + ms;
    for (let next = this.#earliest(end); next; next = this.#earliest(end)) {
      this.#timers.delete(next);
      this.#now = next.at;
      next.fn();
    }
    this.#now = end;
  }

  #earliest(end: number): Timer | undefined {
    let earliest: Timer | undefined;
    for (const timer of this.#timers) if (timer.at <= (earliest?.at ?? end) && timer !== earliest) earliest = timer;
    return earliest;
  }
}
