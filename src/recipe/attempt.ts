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
import type { Entry, LockStore } from './store.ts';

/** What a request under way rejects with when the attempt ends. */
const ENDED = new Error('the call has ended');

/** How often an attempt that must not wait tries again after a failure that may pass, such as a lost answer. */
const MOST_TRIES = 3;

export interface AttemptLimits {
  /** Whether it may wait for other holders. */
  readonly blocking: boolean;
  /** Seconds; 0: no limit. */
  readonly timeout: number;
  readonly signal: AbortSignal | undefined;
  /** When the timeout is over. */
  readonly deadline: Deadline;
}

/** Another entry made by hand may have the very name that an append would give; the next append gets another name. */
const mayPass = (error: unknown): error is EtcdException => isTransient(error) || error instanceof EtcdAlreadyExist;

/** The deadline of a limit that begins now. @param seconds 0: no limit */
export const limitOf = (seconds: number): Deadline => (seconds === 0 ? Deadline.never : Deadline.after(seconds));

/** Characters of a holder's value in a message. This package writes no longer ones; anyone else may. */
const MOST_SHOWN = 500;

const shortened = (value: string): string => (value.length > MOST_SHOWN ? `${value.slice(0, MOST_SHOWN)}…` : value);

/** Returns the error of a timeout: names the holder, and what failed last, if anything did. */
export function timedOut(path: string, timeout: number, holder?: LockHolder, cause?: Error): EtcdWatchTimedOut {
  const left = holder?.ttl === undefined ? 'no expiry' : `${holder.ttl} s left`;
  const who = holder ? `; held by ${shortened(holder.value)} (${holder.key}, ${left})` : '';
  const trouble = cause ? `; ${cause.message}` : '';
  return new EtcdWatchTimedOut(`${path} not acquired within ${timeout} s${who}${trouble}`, { holder, cause });
}

/** One attempt to acquire a lock: what ends it early, which failures it retries, and which error its caller gets. */
export class Attempt {
  readonly #store: LockStore;
  readonly #limits: AttemptLimits;
  readonly #causes: Scope;
  readonly #ended = new Scope();
  #holder: LockHolder | undefined;
  /** What the last request failed with, if it did. */
  #trouble: Error | undefined;

  /**
   * @param path of the queue, for messages
   * @param released aborts when `release()` is called before the attempt ends
   */
  constructor(store: LockStore, path: string, limits: AttemptLimits, released?: Source) {
    const { signal, timeout, deadline } = limits;
    this.#store = store;
    this.#limits = limits;
    this.#causes = new Scope(signal, released, store.pending.closing);
    addAbortListener(this.#causes, this.#end);
    this.#causes.abortAt(deadline, () => timedOut(path, timeout, this.holder, this.#trouble));
  }

  /**
   * Aborts when the attempt ends early. Its reason says nothing: a caller's own reason may be any error, also one that a
   * request could fail with. {@link Attempt.explain} returns the real one.
   */
  get signal(): Source {
    return this.#ended;
  }

  get blocking(): boolean {
    return this.#limits.blocking;
  }

  /** Makes the attempt end when `source` aborts. */
  abortWith(source: Source): void {
    this.#causes.abortWith(source);
  }

  /** @throws what ended the attempt early, if anything did */
  assertActive(): void {
    this.#causes.throwIfAborted();
  }

  /** Remembers the first entry of the queue as the holder, unless it is the own one. */
  saw(first: Entry | undefined, ownKey: string): void {
    this.#holder =
      first === undefined || first.key === ownKey ? undefined : { key: first.key, value: first.value, ttl: first.ttl };
  }

  /** Who holds the lock, as far as known. */
  get holder(): LockHolder | undefined {
    return this.#holder;
  }

  /**
   * Retries the call, ever more slowly, while its failure may pass. Without a timeout it retries forever if the cluster has
   * answered before; if not, a wrong address is more likely than an outage, and it stops after three tries.
   * @param call gets the number of tries that have failed so far
   */
  readonly retry = async <T>(call: (failed: number) => Promise<T>): Promise<T> => {
    const backoff = new Backoff();
    for (let failed = 0; ; failed += 1) {
      try {
        const result = await call(failed);
        this.#trouble = undefined;
        return result;
      } catch (error) {
        if (!mayPass(error) || (!this.#retriesForever && failed + 1 >= MOST_TRIES)) throw error;
        this.#trouble = error;
      }
      await sleep(backoff.next(), this.signal);
    }
  };

  /** Returns the error for the caller: what ended the attempt early, else `error`. The caller's own reason stays untouched. */
  explain(error: unknown): unknown {
    const { aborted, reason } = this.#causes;
    const why = aborted ? reason : error;
    const own = this.#limits.signal?.aborted && why === this.#limits.signal.reason;
    if (own || !(why instanceof EtcdLockExpired) || why.holder || !this.holder) return why;
    return new EtcdLockExpired(why.message, { cause: why.cause, holder: this.holder });
  }

  dispose(): void {
    this.#causes.dispose();
  }

  readonly #end = (): void => this.#ended.abort(ENDED);

  get #retriesForever(): boolean {
    return this.#limits.blocking && (this.#limits.timeout > 0 || this.#store.clusterId !== undefined);
  }
}
