import type { Held } from '../held.ts';
import type { Hold } from '../hold.ts';

/** One leadership: from the election of this process until the end of the loop's body, `resign()` or the loss of the lock. */
export interface Term extends Held {
  /** What this process publishes: the option `value` of the election; undefined if it has none. */
  readonly value: string | undefined;
  /**
   * Ends the term: removes the entry, so that the next candidate leads. Resolves to true if this process led until this call, to
   * false if it had lost the leadership before. Never rejects. If the key cannot be removed within two seconds, the removal is
   * retried in the background. Does not abort {@link Held.signal}.
   */
  resign(): Promise<boolean>;
}

/** @internal */
export const termOf = (hold: Hold, value: string | undefined): Term =>
  Object.assign(hold.held, { value, resign: async () => (await hold.end()).lost === undefined });
