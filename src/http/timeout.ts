import { ignore } from '../cancellation.ts';
import { now, type TimerOptions } from '../time.ts';

/** How often the sockets are read at least before a timeout ends: enough to connect with TLS, to send and to be answered. */
const STEPS = 6;
/** The longest delay `setTimeout` keeps, in milliseconds; a longer one would fire at once. */
const LONGEST_TIMER = 2 ** 31 - 1;

/**
 * A timeout that does not count the time in which the event loop is blocked. Node fires timers before it reads sockets: after
 * a blocked loop a plain timer would give up a request whose answer has arrived.
 *
 * The time is counted in steps. The sockets are read after each step, and a late step counts no more than a timely one.
 */
export class Timeout {
  /** Milliseconds. */
  readonly #step: number;
  #left: number;
  /** When the present step began, and how long it lasts. */
  #since = 0;
  #delay = 0;
  #fn: () => void = ignore;
  #ref = true;
  #timer: NodeJS.Timeout | undefined;
  /** Set until the sockets have been read after a step. */
  #reading: NodeJS.Immediate | undefined;

  /** @param seconds may be `Infinity`: never ends */
  constructor(seconds: number) {
    this.#left = seconds * 1000;
    this.#step = this.#left / STEPS;
  }

  /** Calls `fn` after so many seconds. */
  static run(seconds: number, fn: () => void, options?: TimerOptions): Timeout {
    const timeout = new Timeout(seconds);
    timeout.run(fn, options);
    return timeout;
  }

  /** Counts until the time has passed, then calls `fn`; goes on where it was paused. */
  run(fn: () => void, { ref = true }: TimerOptions = {}): void {
    if (this.#left === Number.POSITIVE_INFINITY) return;
    this.#fn = fn;
    this.#ref = ref;
    this.#arm();
  }

  pause(): void {
    if (!this.#timer) return;
    clearTimeout(this.#timer);
    clearImmediate(this.#reading);
    this.#timer = undefined;
    this.#reading = undefined;
    this.#count();
  }

  #arm(): void {
    this.#since = now();
    this.#delay = Math.min(Math.ceil(Math.min(this.#step, this.#left)), LONGEST_TIMER);
    this.#timer = setTimeout(Timeout.#onStep, this.#delay, this);
    if (!this.#ref) this.#timer.unref();
  }

  #count(): void {
    this.#left = Math.max(this.#left - Math.min(now() - this.#since, this.#delay), 0);
  }

  static #onStep(timeout: Timeout): void {
    // Else the sockets have not been read since the last step: other timers have blocked the loop.
    if (!timeout.#reading) {
      timeout.#count();
      timeout.#reading = setImmediate(Timeout.#onSocketsRead, timeout);
    }
    if (timeout.#left > 0) timeout.#arm();
  }

  static #onSocketsRead(timeout: Timeout): void {
    timeout.#reading = undefined;
    if (timeout.#left === 0) timeout.#fn();
  }
}
