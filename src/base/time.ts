import { detached } from './async-context.ts';

/** Maximum delay of `setTimeout`, in milliseconds; a longer one would fire at once. */
const LONGEST_TIMER = 2 ** 31 - 1;

/** Returns the time on the monotonic clock, in milliseconds. */
export const now = (): number => performance.now();

/** A point in time on the monotonic clock. A call creates one deadline at its start and passes it on. */
export class Deadline {
  /** A deadline that never passes. */
  static readonly never = new Deadline(Number.POSITIVE_INFINITY);
  readonly at: number;

  /** @param at milliseconds on the monotonic clock */
  constructor(at: number) {
    this.at = at;
  }

  /** Returns a deadline that passes after `seconds` seconds. */
  static after(seconds: number): Deadline {
    return new Deadline(now() + seconds * 1000);
  }

  /** Milliseconds left, at least 0. */
  get remaining(): number {
    return Math.max(0, this.at - now());
  }

  get passed(): boolean {
    return now() >= this.at;
  }
}

/** A clock with timers. Tests pass one whose time they control. */
export interface Clock {
  /** Milliseconds. */
  now(): number;
  /** Calls `fn` once, `ms` milliseconds from now. Returns a function that cancels the call. */
  after(ms: number, fn: () => void): () => void;
}

export interface TimerOptions {
  /** Whether the timer keeps the process alive. Default true. */
  readonly ref?: boolean;
}

/** Calls `fn` one time when the deadline has passed, however far away that is. Returns a function that cancels the timer. */
export function atDeadline(deadline: Deadline, fn: () => void, { ref = true }: TimerOptions = {}): () => void {
  if (deadline.at === Number.POSITIVE_INFINITY) return () => {};
  const fire = (): void => {
    if (deadline.passed) fn();
    else timer = arm(deadline, fire, ref);
  };
  let timer = arm(deadline, fire, ref);
  return () => clearTimeout(timer);
}

function arm(deadline: Deadline, fire: () => void, ref: boolean): NodeJS.Timeout {
  // A timer counts whole milliseconds and may fire early: round up here, and let `fire` check the deadline again.
  const timer = setTimeout(fire, Math.min(Math.ceil(deadline.remaining), LONGEST_TIMER));
  return ref ? timer : timer.unref();
}

/** A clock that starts at the system time and never jumps. Its timers do not keep the process alive. */
export const systemClock: Clock = {
  now: () => Math.floor(performance.timeOrigin + performance.now()),
  after: (ms, fn) => atDeadline(Deadline.after(ms / 1000), fn, { ref: false }),
};

/** A clock that never jumps, as {@link now}. Its timers do not keep the process alive. */
export const monotonicClock: Clock = { now, after: systemClock.after };

/** Delays between retries. They double from `first` to `most` milliseconds. Jitter shortens each delay by up to a half. */
export class Backoff {
  readonly #first: number;
  readonly #most: number;
  #next: number;

  constructor({ first = 100, most = 500 } = {}) {
    this.#first = first;
    this.#most = most;
    this.#next = first;
  }

  /** Returns the milliseconds to wait before the next retry. */
  next(): number {
    const whole = this.#next;
    this.#next = Math.min(whole * 2, this.#most);
    return whole * (0.5 + Math.random() / 2);
  }

  reset(): void {
    this.#next = this.#first;
  }
}

/** Number of steps of a long loop between two pauses: a few milliseconds of work. */
const STEPS = 500;

/** Resolves at the next turn of the event loop at which a long loop may continue. */
let nextTurn = Promise.resolve();

/**
 * Lets other work of this process continue during a long loop: {@link Turns.step} pauses the loop every 500 steps. Loops that are
 * shorter never pause. Of several long loops, one continues at each turn of the event loop.
 *
 * @example
 * ```ts
 * const pause = turns.step();
 * if (pause) await pause;
 * ```
 */
export class Turns {
  readonly #signal: { throwIfAborted(): void } | undefined;
  #steps = 0;

  /** @param signal ends the loop at its next pause: the pause rejects with the abort reason */
  constructor(signal?: { throwIfAborted(): void }) {
    this.#signal = signal;
  }

  /** Call this once for each step of the loop. If it returns a promise, wait for that before the next step. */
  step(): Promise<void> | undefined {
    this.#steps += 1;
    if (this.#steps % STEPS !== 0) return undefined;
    nextTurn = detached(() => nextTurn.then(() => new Promise((resolve) => void setImmediate(resolve))));
    return nextTurn.then(() => this.#signal?.throwIfAborted());
  }
}
