import type { Append } from '../keys/api.ts';
import { Deadline, Scope, type Source } from '../timing.ts';
import type { Behind } from './endpoint.ts';
import { decodeSnapshot, type WireRequest } from './wire.ts';

export const NO_LISTING: Append['listing'] = Promise.resolve(undefined);

/** A listing that is asked for right behind an append. It outlives the call, which ends with the answer to the append. */
export class ListingBehind {
  /** For the request before it. */
  readonly behind: Behind;
  readonly #scope: Scope;
  #found = NO_LISTING;

  /**
   * @param timeout seconds for both
   * @param sources what ends it early
   */
  constructor(request: WireRequest, timeout: number, ...sources: readonly (Source | undefined)[]) {
    this.#scope = new Scope(...sources);
    this.behind = {
      request,
      timeout,
      ending: this.#scope,
      sent: (answer) => {
        this.#found = answer.then((found) => found && decodeSnapshot(found)).catch(() => undefined);
      },
    };
  }

  /** What was found so many seconds from now at the latest; never rejects. */
  within(seconds: number): Append['listing'] {
    this.#scope.abortAt(Deadline.after(seconds), () => 'late', { ref: false });
    return this.#ended();
  }

  cancel(reason: unknown): void {
    this.#scope.abort(reason);
    void this.#ended();
  }

  #ended(): Append['listing'] {
    return this.#found.finally(() => this.#scope.dispose());
  }
}
