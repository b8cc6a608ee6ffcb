import type { Append } from '../keys/api.ts';
import { ignore, Scope, type Source } from '../timing.ts';
import type { Behind, SendOptions } from './endpoint.ts';
import { Timeout } from './timeout.ts';
import { decodeSnapshot, type WireAnswer, type WireRequest } from './wire.ts';

export const NO_LISTING: Append['listing'] = Promise.resolve(undefined);

/** A listing that is asked for right behind an append. It outlives the call, which ends with the answer to the append. */
export class ListingBehind {
  /** For the request before it. */
  readonly behind: Behind;
  readonly #scope: Scope;
  readonly #patience: number;
  #found = NO_LISTING;
  #stopTimeout = ignore;
  #over = false;

  /**
   * @param before how the append is sent
   * @param patience seconds it may take longer than the append
   * @param sources what ends it early
   */
  constructor(
    request: WireRequest,
    { timeout, begun }: Pick<SendOptions, 'timeout' | 'begun'>,
    patience: number,
    ...sources: readonly (Source | undefined)[]
  ) {
    this.#scope = new Scope(...sources);
    this.#patience = patience;
    this.behind = {
      request,
      timeout: timeout + patience,
      ending: this.#scope,
      begun,
      sent: (answer) => {
        this.#found = this.#decoded(answer);
      },
    };
  }

  /** What was found, once the append is answered; never rejects. */
  soon(): Append['listing'] {
    if (!this.#over)
      this.#stopTimeout = new Timeout(this.#patience).run(() => this.#scope.abort('late'), { ref: false });
    return this.#found;
  }

  cancel(reason: unknown): void {
    this.#scope.abort(reason);
    this.#end();
  }

  async #decoded(answer: Promise<WireAnswer | undefined>): Append['listing'] {
    try {
      const found = await answer;
      return found && decodeSnapshot(found);
    } catch {
      return undefined;
    } finally {
      this.#end();
    }
  }

  #end(): void {
    this.#over = true;
    this.#stopTimeout();
    this.#scope.dispose();
  }
}
