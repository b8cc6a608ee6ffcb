import { orAborted, pause, Scope, type Source } from './cancellation.ts';
import { Backoff, Deadline } from './time.ts';

/**
 * Work that may still leave a key behind: calls under way, and removals that a call could not finish. Such removals are retried
 * in the background without keeping the process alive. Closing the store waits for all pending work, up to a timeout.
 */
export class PendingWork {
  readonly #pending = new Map<Promise<void>, string>();
  /** Aborts when the store is being closed. Calls should end then, and waiting removals should retry once. */
  readonly closing = new Scope();
  readonly #reason: () => Error;

  /** @param reason returns the error that calls under way end with when the store is closed */
  constructor(reason: () => Error) {
    this.#reason = reason;
  }

  /** Registers work in progress on a key. `done` must not reject. */
  add(key: string, done: Promise<void>): void {
    this.#pending.set(done, key);
    void done.then(() => this.#pending.delete(done));
  }

  /** Waits for pending work, at most `seconds` seconds. Resolves to the keys of work that is still pending. */
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

/** Why background work was aborted. */
export const STOPPED = new Error('stopped');

/** Work in the background, which can be stopped. */
export interface Running {
  /** Settles when the work has ended. Never rejects. */
  readonly ended: Promise<void>;
  readonly stop: Scope;
}

/** Stops the work and waits for its end. */
export async function stopped(running: Running | undefined): Promise<void> {
  running?.stop.abort(STOPPED);
  await running?.ended;
}

export interface KeepTryingOptions {
  /** Seconds between two attempts, at most. */
  readonly most: number;
  /** Aborts when the client is closed. */
  readonly closing: Source;
  readonly signal: Source;
}

/**
 * Repeats an attempt, ever more slowly, while `more` returns true and `signal` has not aborted. Closing leaves little time: it
 * ends the present pause, and from then on the pauses are short.
 * @param more gets whether the client is being closed
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
