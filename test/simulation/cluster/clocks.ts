import type { Clock } from '../../../src/base/time.ts';

/** A clock that stands still unless someone sets it: that of a replica, whose entries contain the times. */
export class ReplicaClock implements Clock {
  #time = 0;
  #due: (() => void) | undefined;
  readonly #running: () => number;

  /** @param running what it shows while no entry is applied */
  constructor(running: () => number) {
    this.#running = running;
  }

  #isSet = false;

  now(): number {
    return this.#isSet ? this.#time : this.#running();
  }

  after(_: number, fn: () => void): () => void {
    this.#due = fn;
    return () => {
      if (this.#due === fn) this.#due = undefined;
    };
  }

  /** Whether something may be due. */
  get isArmed(): boolean {
    return this.#due !== undefined;
  }

  /** Runs `work` at a time. */
  at<T>(time: number, work: () => T): T {
    this.#time = time;
    this.#isSet = true;
    try {
      return work();
    } finally {
      this.#isSet = false;
    }
  }

  /** Runs what is due at the time that is set. */
  expire(): void {
    const due = this.#due;
    this.#due = undefined;
    due?.();
  }
}

/** The time of whoever leads: it stands still while nobody does. */
export class LeaderClock implements Clock {
  #passed = 0;
  /** When what was due was last carried out. */
  #tickedAt = 0;
  #leader: { readonly now: () => number; readonly since: number } | undefined;
  readonly #timers = new Set<{ readonly at: number; readonly fn: () => void }>();

  now(): number {
    return this.#passed + (this.#leader ? this.#leader.now() - this.#leader.since : 0);
  }

  after(ms: number, fn: () => void): () => void {
    const timer = { at: this.now() + ms, fn };
    this.#timers.add(timer);
    return () => this.#timers.delete(timer);
  }

  /** Continues by the clock of a new leader. What has become due since the last tick is not due any more: nobody has seen it expire. */
  follow(now: () => number): void {
    this.#passed = this.#tickedAt;
    this.#leader = { now, since: now() };
  }

  /** Runs what is due. */
  tick(): void {
    const now = this.now();
    this.#tickedAt = now;
    for (const timer of [...this.#timers].sort((one, other) => one.at - other.at)) {
      if (timer.at > now || !this.#timers.delete(timer)) continue;
      timer.fn();
    }
  }

  /** Number of timers that have not fired. */
  get pending(): number {
    return this.#timers.size;
  }
}
