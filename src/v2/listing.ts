import { ignore, Scope, type Source } from '../cancellation.ts';
import type { Behind, SendOptions } from '../http/endpoint.ts';
import { Timeout } from '../http/timeout.ts';
import type { Trial } from '../http/trial.ts';
import type { Append } from './keys-api.ts';
import { decodeSnapshot, encodeGet, type WireAnswer } from './wire.ts';

export const NO_LISTING: Append['listing'] = Promise.resolve(undefined);

/** Seconds a listing may take longer than the append before it: the member has had both requests since the append was sent. */
const PATIENCE = 0.5;
/** Why it is given up after that. */
const LATE = new Error('the listing did not come with the append');

/** A listing that is asked for right behind an append. It outlives the call, which ends with the answer to the append. */
export class ListingBehind {
  /** For the request before it. */
  readonly behind: Behind;
  readonly #pipelining: Trial;
  readonly #scope: Scope;
  #found = NO_LISTING;
  #patience: Timeout | undefined;
  /** Whether the append has been answered. */
  #appended = false;
  #over = false;

  /**
   * @param dir what is listed
   * @param before how the append is sent
   * @param pipelining finds out whether the member answers requests sent like this
   * @param sources what ends it early
   */
  constructor(
    dir: string,
    { timeout, begun }: Pick<SendOptions, 'timeout' | 'begun'>,
    pipelining: Trial,
    ...sources: readonly (Source | undefined)[]
  ) {
    this.#pipelining = pipelining;
    this.#scope = new Scope(...sources);
    this.behind = {
      request: encodeGet(dir, { recursive: true }),
      timeout: timeout + PATIENCE,
      ending: this.#scope,
      begun,
      sent: (answer) => {
        this.#found = this.#decoded(answer, dir);
      },
    };
  }

  /** What was found, once the append is answered; never rejects. */
  soon(): Append['listing'] {
    this.#appended = true;
    if (!this.#over) this.#patience = Timeout.run(PATIENCE, () => this.#scope.abort(LATE), { ref: false });
    return this.#found;
  }

  cancel(reason: unknown): void {
    this.#scope.abort(reason);
    this.#end();
  }

  async #decoded(answer: Promise<WireAnswer | undefined>, dir: string): Append['listing'] {
    try {
      const found = await answer.catch(ignore);
      if (!found) return this.#missed();
      this.#pipelining.succeeded();
      return decodeSnapshot(found, dir);
    } catch {
      return undefined;
    } finally {
      this.#end();
    }
  }

  /** Without an answer to the append, or where the caller gave up, the missing answer says nothing of the member. */
  #missed(): undefined {
    const { aborted, reason } = this.#scope;
    if (this.#appended && (!aborted || reason === LATE)) this.#pipelining.failed();
    return undefined;
  }

  #end(): void {
    this.#over = true;
    this.#patience?.pause();
    this.#scope.dispose();
  }
}
