import { ignore, orAborted, Scope, type Source } from '../base/cancellation.ts';
import { now, type TimerOptions } from '../base/time.ts';

/** Minimum number of times the sockets are read before a timeout ends: enough to connect with TLS, send and get an answer. */
const STEPS = 6;
/** Maximum delay of `setTimeout`, in milliseconds; a longer one would fire at once. */
const LONGEST_TIMER = 2 ** 31 - 1;

/**
 * A timeout that does not count the time during which the event loop is blocked. Node fires timers before it reads sockets.
 * So after a blocked loop, a plain timer would give up a request whose answer has arrived.
 *
 * The timeout counts in steps and reads the sockets after each. A step that ends late counts only its planned length.
 */
export class Timeout {
  /** Milliseconds. */
  readonly #step: number;
  #left: number;
  /** When the current step began, and its planned length, in milliseconds. */
  #since = 0;
  #delay = 0;
  #fn: () => void = ignore;
  #ref = true;
  #timer: NodeJS.Timeout | undefined;
  /** Set until the sockets have been read after a step. */
  #reading: NodeJS.Immediate | undefined;

  /** @param seconds `Infinity`: never ends */
  constructor(seconds: number) {
    this.#left = seconds * 1000;
    this.#step = this.#left / STEPS;
  }

  /** Calls `fn` after `seconds` seconds. */
  static run(seconds: number, fn: () => void, options?: TimerOptions): Timeout {
    const timeout = new Timeout(seconds);
    timeout.run(fn, options);
    return timeout;
  }

  /** Starts counting, or resumes after {@link pause}, and calls `fn` when the time has passed. */
  run(fn: () => void, { ref = true }: TimerOptions = {}): void {
    if (this.#left === Number.POSITIVE_INFINITY) return;
    this.#fn = fn;
    this.#ref = ref;
    this.#arm();
  }

  /** Starts again with this many seconds, and the function of {@link run}. Does nothing unless it is running. */
  restart(seconds: number): void {
    if (!this.#timer) return;
    this.pause();
    this.#left = seconds * 1000;
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
    // If still set, other timers blocked the loop: the sockets have not been read since the last step.
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

/** How long a call waits for an answer that several calls share. */
export interface Limits {
  /** Ends the wait when it aborts. */
  readonly ending: Source;
  /** Seconds. */
  readonly timeout: number;
  /** In the lane `background`, the wait does not keep the process alive. */
  readonly lane: string;
}

/**
 * Waits for an answer that several calls share.
 * @param late returns the error if no answer comes in time
 * @throws the reason of `ending` if that aborts first
 */
export async function within<T>(answer: Promise<T>, limits: Limits, late: () => Error): Promise<T> {
  const { ending, timeout, lane } = limits;
  const scope = new Scope(ending);
  const timer = Timeout.run(timeout, () => scope.abort(late()), { ref: lane !== 'background' });
  try {
    return await orAborted(answer, scope);
  } finally {
    timer.pause();
    scope.dispose();
  }
}
