import { ignore, Scope, type Source } from '../base/cancellation.ts';
import type { PipelinedRequest, SendOptions } from '../http/endpoint.ts';
import type { OptionalFeature } from '../http/optional-feature.ts';
import { Timeout } from '../http/timeout.ts';
import type { Append } from './keys-api.ts';
import { decodeSnapshot, encodeGet, type WireAnswer } from './wire.ts';

export const NO_LISTING: Append['listing'] = Promise.resolve(undefined);

/** Maximum seconds between the answer to the append and the listing. The member received both requests together. */
const MAX_DELAY = 0.5;
/** Abort reason of a listing that takes longer. */
const TOO_LATE = new Error('the listing did not come with the append');

/**
 * A listing whose request is pipelined: sent right after an append on the same connection. The listing may come after the call
 * has ended, because the call ends with the answer to the append.
 */
export class PipelinedListing {
  readonly request: PipelinedRequest;
  readonly #pipelining: OptionalFeature;
  readonly #scope: Scope;
  #listing = NO_LISTING;
  #timeout: Timeout | undefined;
  /** Whether the append has been answered. */
  #isAppended = false;
  #isOver = false;

  /**
   * @param dir the directory to list
   * @param append options that the append is sent with
   * @param pipelining records whether the member answers the pipelined request
   * @param sources signals that end the listing when one of them aborts
   */
  constructor(
    dir: string,
    { timeout, onHeaders }: Pick<SendOptions, 'timeout' | 'onHeaders'>,
    pipelining: OptionalFeature,
    ...sources: readonly (Source | undefined)[]
  ) {
    this.#pipelining = pipelining;
    this.#scope = new Scope(...sources);
    this.request = {
      request: encodeGet(dir, { recursive: true }),
      timeout: timeout + MAX_DELAY,
      ending: this.#scope,
      onHeaders,
      onSent: (answer) => {
        this.#listing = this.#decode(answer, dir);
      },
    };
  }

  /** Call this when the append has been answered. Resolves within 0.5 s, to undefined if there is no listing; never rejects. */
  onAppended(): Append['listing'] {
    this.#isAppended = true;
    if (!this.#isOver) this.#timeout = Timeout.run(MAX_DELAY, () => this.#scope.abort(TOO_LATE), { ref: false });
    return this.#listing;
  }

  cancel(reason: unknown): void {
    this.#scope.abort(reason);
    this.#end();
  }

  async #decode(answer: Promise<WireAnswer | undefined>, dir: string): Append['listing'] {
    try {
      const found = await answer.catch(ignore);
      if (!found) return this.#noteMissing();
      this.#pipelining.succeeded();
      return decodeSnapshot(found, dir);
    } catch {
      return undefined;
    } finally {
      this.#end();
    }
  }

  /**
   * Records that the member did not answer the pipelined request. Does nothing if that says nothing about the member, because the
   * append was not answered either, or the caller gave up.
   */
  #noteMissing(): undefined {
    const { aborted, reason } = this.#scope;
    if (this.#isAppended && (!aborted || reason === TOO_LATE)) this.#pipelining.failed();
    return undefined;
  }

  #end(): void {
    this.#isOver = true;
    this.#timeout?.pause();
    this.#scope.dispose();
  }
}
