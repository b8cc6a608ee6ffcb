import { ignore, now, type TimerOptions } from '../timing.ts';

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

  /** @param seconds may be `Infinity`: never ends */
  constructor(seconds: number) {
    this.#left = seconds * 1000;
    this.#step = this.#left / STEPS;
  }

  /** Counts until the time has passed, then calls `fn`. Returns what pauses it; a later call counts on from there. */
  run(fn: () => void, { ref = true }: TimerOptions = {}): () => void {
    if (this.#left === Number.POSITIVE_INFINITY) return ignore;
    let timer: NodeJS.Timeout;
    let immediate: NodeJS.Immediate | undefined;
    let since = 0;
    let delay = 0;
    const count = (): void => {
      this.#left = Math.max(this.#left - Math.min(now() - since, delay), 0);
    };
    const arm = (): void => {
      since = now();
      delay = Math.min(Math.ceil(Math.min(this.#step, this.#left)), LONGEST_TIMER);
      timer = setTimeout(onStep, delay);
      if (!ref) timer.unref();
    };
    const onStep = (): void => {
      // Else the sockets have not been read since the last step: other timers have blocked the loop.
      if (!immediate) {
        count();
        immediate = setImmediate(onSocketsRead);
      }
      if (this.#left > 0) arm();
    };
    const onSocketsRead = (): void => {
      immediate = undefined;
      if (this.#left === 0) fn();
    };
    arm();
    return () => {
      clearTimeout(timer);
      clearImmediate(immediate);
      count();
    };
  }
}
