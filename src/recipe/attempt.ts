import { addAbortListener, Scope, type Source, sleep } from '../cancellation.ts';
import {
  EtcdAlreadyExist,
  type EtcdException,
  EtcdLockExpired,
  EtcdWatchTimedOut,
  isTransient,
  type LockHolder,
} from '../errors.ts';
import { Backoff, Deadline } from '../time.ts';
import type { KeysApi } from '../v2/keys-api.ts';
import { holderOf, type Queue } from '../v2/locks/queue.ts';

/** What a request that is under way rejects with. */
const ENDED = new Error('the call has ended');

/** How often a call that must not wait tries over what may pass, such as a lost answer. */
const IMPATIENT_TRIES = 3;

export interface CallLimits {
  /** Whether it may wait. */
  readonly blocking: boolean;
  /** Seconds; 0: no limit. */
  readonly timeout: number;
  readonly signal: AbortSignal | undefined;
}

export interface CallCircumstances {
  /** Ends the call when the lock is released meanwhile. */
  readonly released?: Source;
  /** When the timeout is over, where it began earlier. */
  readonly deadline?: Deadline;
}

/**
 * Calls again while the failure is one that passes; for how long, the caller decides.
 * @param call gets the number of calls that have failed so far
 */
export type Persist = <T>(call: (failed: number) => Promise<T>) => Promise<T>;

/** A key that stands where an append would make its own is in the way of that one name only; the next name is another. */
const passes = (error: unknown): error is EtcdException => isTransient(error) || error instanceof EtcdAlreadyExist;

/** When a limit of so many seconds from now is over; 0: never. */
export const limitOf = (seconds: number): Deadline => (seconds === 0 ? Deadline.never : Deadline.after(seconds));

/** Characters of a holder's value in a message. This package writes none that long; anyone else may. */
const MOST_SHOWN = 500;

const shortened = (value: string): string => (value.length > MOST_SHOWN ? `${value.slice(0, MOST_SHOWN)}…` : value);

/** Tells who stands in the way, and what went wrong last, if anything did. */
export function timedOut(path: string, timeout: number, holder?: LockHolder, cause?: Error): EtcdWatchTimedOut {
  const left = holder?.ttl === undefined ? 'no expiry' : `${holder.ttl} s left`;
  const who = holder ? `; held by ${shortened(holder.value)} (${holder.key}, ${left})` : '';
  const trouble = cause ? `; ${cause.message}` : '';
  return new EtcdWatchTimedOut(`${path} not acquired within ${timeout} s${who}${trouble}`, { holder, cause });
}

/** One call of `acquire`: what ends it, what it waits out, and what its error tells. */
export class Call {
  readonly #keys: KeysApi;
  readonly #options: CallLimits;
  readonly #causes: Scope;
  readonly #ended = new Scope();
  #holder: LockHolder | undefined;
  /** What the last request failed with, if it did. */
  #trouble: Error | undefined;

  /** @param circumstances what is not as for a call that begins now */
  constructor(keys: KeysApi, path: string, options: CallLimits, circumstances: CallCircumstances = {}) {
    const { released, deadline = limitOf(options.timeout) } = circumstances;
    this.#keys = keys;
    this.#options = options;
    this.#causes = new Scope(options.signal, released, keys.cleanups.closing);
    addAbortListener(this.#causes, this.#end);
    this.#causes.abortAt(deadline, () => timedOut(path, options.timeout, this.holder, this.#trouble));
  }

  /**
   * Aborts when the call ends early. Its reason says nothing: a caller's own may be any error, also one that a request
   * could have met. {@link Call.explain} puts the real one in.
   */
  get signal(): Source {
    return this.#ended;
  }

  /** The call also ends when this does. */
  abortWith(source: Source): void {
    this.#causes.abortWith(source);
  }

  /** @throws what ended the call early, if anything did */
  assertGoesOn(): void {
    this.#causes.throwIfAborted();
  }

  /** Notes who is first in line, unless that is ourselves. */
  saw(queue: Queue, ownKey: string): void {
    const holder = holderOf(queue);
    this.#holder = holder?.key === ownKey ? undefined : holder;
  }

  /** Who stands in the way, as far as that is known. */
  get holder(): LockHolder | undefined {
    return this.#holder;
  }

  /** Calls again, ever more slowly, while the failure is one that passes. */
  readonly persist: Persist = async (call) => {
    const backoff = new Backoff();
    for (let failed = 0; ; failed += 1) {
      try {
        const result = await call(failed);
        this.#trouble = undefined;
        return result;
      } catch (error) {
        if (!passes(error) || (!this.#isPatient && failed + 1 >= IMPATIENT_TRIES)) throw error;
        this.#trouble = error;
      }
      await sleep(backoff.next(), this.signal);
    }
  };

  /** What the caller is told: what ended the call early, untouched where it is the caller's own; else the error met. */
  explain(error: unknown): unknown {
    const { aborted, reason } = this.#causes;
    const why = aborted ? reason : error;
    const own = this.#options.signal?.aborted && why === this.#options.signal.reason;
    if (own || !(why instanceof EtcdLockExpired) || why.holder || !this.holder) return why;
    return new EtcdLockExpired(why.message, { cause: why.cause, holder: this.holder });
  }

  dispose(): void {
    this.#causes.dispose();
  }

  readonly #end = (): void => this.#ended.abort(ENDED);

  /** Without a limit, a cluster that never answered is more likely a wrong address than an outage. */
  get #isPatient(): boolean {
    return this.#options.blocking && (this.#options.timeout > 0 || this.#keys.clusterId !== undefined);
  }
}
