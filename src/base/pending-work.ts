import { EtcdClientClosed } from '../errors.ts';
import { orAborted, pause, Scope, type Source } from './cancellation.ts';
import { Backoff, Deadline } from './time.ts';

/**
 * Work that may still leave a key behind: calls under way, and removals that a call could not finish. Such removals are retried
 * in the background without keeping the process alive. Closing the client waits for all pending work, up to a timeout.
 */
export class PendingWork {
  readonly #pending = new Map<Promise<void>, string>();
  /** Aborts when the client is being closed. Calls must then end; a removal that is pausing must retry at once. */
  readonly closing = new Scope();
  readonly #reason: () => Error;

  /** @param reason returns the error with which calls under way reject when the client is closed */
  constructor(reason: () => Error) {
    this.#reason = reason;
  }

  /** Registers work in progress on a key. `done` must not reject. */
  add(key: string, done: Promise<void>): void {
    this.#pending.set(done, key);
    void done.then(() => this.#pending.delete(done));
  }

  /** Aborts `closing` and waits for pending work, at most `seconds` seconds. Resolves to the keys of work still pending. */
  async settle(seconds: number): Promise<string[]> {
    this.closing.abort(this.#reason());
    const scope = new Scope().abortAt(Deadline.after(seconds), () => undefined);
    try {
      while (this.#pending.size > 0) await orAborted(Promise.all(this.#pending.keys()), scope);
    } catch {
      // Timed out: report what is still pending.
    } finally {
      scope.dispose();
    }
    return [...new Set(this.#pending.values())].sort();
  }
}

/** Abort reason of background work that was stopped. */
export const STOPPED = new Error('the background work was stopped');

/** Background work that can be stopped. */
export interface Running {
  /** Settles when the work has ended. Never rejects. */
  readonly ended: Promise<void>;
  /** Abort this scope to stop the work. */
  readonly stop: Scope;
}

/** Stops the work, if there is any, and waits until it has ended. */
export async function stopped(running: Running | undefined): Promise<void> {
  running?.stop.abort(STOPPED);
  await running?.ended;
}

/**
 * Waits for one attempt at background work. Resolves to its error if it failed, else to undefined.
 * @throws the error if the work was stopped, or the client is closed: there must be no further attempt
 */
export async function failureOf(attempt: Promise<void>, signal: Source): Promise<unknown> {
  try {
    await attempt;
    return undefined;
  } catch (error) {
    if (signal.aborted || error instanceof EtcdClientClosed) throw error;
    return error;
  }
}

export interface KeepTryingOptions {
  /** Maximum seconds between two calls of `attempt`. */
  readonly most: number;
  /** Aborts when the client is being closed. */
  readonly closing: Source;
  /** Stops the retries. */
  readonly signal: Source;
}

/**
 * Calls `attempt` again and again, with growing pauses, while `more` returns true and `signal` has not aborted. Once the client
 * is being closed, little time is left: the current pause ends at once, and later pauses are short.
 * @param more returns whether to continue; its argument is true once the client is being closed
 */
export async function keepTrying(
  more: (hurried: boolean) => boolean,
  attempt: () => Promise<void>,
  { most, closing, signal }: KeepTryingOptions,
): Promise<void> {
  let backoff = new Backoff({ first: 500, most: most * 1000 });
  let hurried = false;
  while (more(hurried)) {
    await pause(backoff.next(), signal, ...(hurried ? [] : [closing]));
    if (signal.aborted) return;
    if (closing.aborted && !hurried) backoff = new Backoff({ first: 100, most: 500 });
    hurried = closing.aborted;
    await attempt();
  }
}
