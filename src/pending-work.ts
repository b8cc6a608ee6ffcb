import { orAborted, Scope } from './cancellation.ts';
import { Deadline } from './time.ts';

/**
 * What may still leave a key behind: calls under way, and removals that could not be finished in the call that owed them.
 * The latter go on in the background without keeping the process alive. Closing the store waits for all, up to a limit.
 */
export class Cleanups {
  readonly #pending = new Map<Promise<void>, string>();
  /** Aborts when the store is being closed: what can end sooner should, what waits should try once more. */
  readonly closing = new Scope();
  readonly #reason: () => Error;

  /** @param reason makes the error that calls under way end with when the store is closed */
  constructor(reason: () => Error) {
    this.#reason = reason;
  }

  /** Registers work in progress under the key it is about. `done` must not reject. */
  add(key: string, done: Promise<void>): void {
    this.#pending.set(done, key);
    void done.then(() => this.#pending.delete(done));
  }

  /** Waits for what is pending, `seconds` at the most. Resolves to the keys that had to be left. */
  async settle(seconds: number): Promise<string[]> {
    this.closing.abort(this.#reason());
    const scope = new Scope().abortAt(Deadline.after(seconds), () => undefined);
    try {
      while (this.#pending.size > 0) await orAborted(Promise.all(this.#pending.keys()), scope);
    } catch {
      // Out of time: what is still pending is the answer.
    } finally {
      scope.dispose();
    }
    return [...new Set(this.#pending.values())].sort();
  }
}
