import { addAbortListener, Scope, type Source, sleep } from '../base/cancellation.ts';
import { createDebug } from '../base/debug.ts';
import { Backoff, Deadline } from '../base/time.ts';
import {
  EtcdAlreadyExist,
  type EtcdException,
  EtcdLockExpired,
  EtcdLockTimeout,
  failuresOf,
  isTransient,
  type LockHolder,
} from '../errors.ts';
import { describeHolder, holderOf } from './entries/holder.ts';
import type { Entry, LockStore, Standing } from './store.ts';

/** Abort reason of the requests of an attempt that ended early. */
const ENDED = new Error('the attempt to acquire the lock has ended');

const debug = createDebug('lock');

/** Maximum tries of one request, in the cases that {@link Attempt.retry} limits. */
const MOST_TRIES = 3;

/** Limits of an attempt: whether it may wait, and when it ends even if the lock is not held. */
export interface AttemptLimits {
  /** Whether the attempt may wait for other holders. */
  readonly blocking: boolean;
  /** Seconds for the whole attempt; 0: no limit. */
  readonly timeout: number;
  /** The caller's signal. */
  readonly signal: AbortSignal | undefined;
  /** When `timeout` has passed. */
  readonly deadline: Deadline;
  /** Whether an attempt without a timeout retries even if the cluster has never answered. Default false. */
  readonly outlastsOutages?: boolean | undefined;
  /** Returns whether the attempt was made inside a callback that still holds the same lock. Undefined: it was not. */
  readonly isInsideHold?: (() => boolean) | undefined;
}

/**
 * Whether a retry may succeed. Unlike {@link isTransient}, also true if a key made by hand already has the name that an append
 * would get: the next append gets another name.
 */
const mayRetry = (error: unknown): error is EtcdException => isTransient(error) || error instanceof EtcdAlreadyExist;

/** Returns the deadline after `seconds` seconds; 0: no limit. */
export const deadlineUnlessZero = (seconds: number): Deadline =>
  seconds === 0 ? Deadline.never : Deadline.after(seconds);

/** Added to the message of a timeout if the caller of the attempt itself holds the lock. */
const DEADLOCK =
  '; the request was made inside the callback that holds this lock, so awaiting the request there deadlocks. ' +
  'Make the request outside, or use request() with reentrant: true';

/** What is known about a lock that is not acquired. */
export interface WaitState {
  /** Whether the wait is for another entry or request, or for an answer of etcd. */
  readonly reason: EtcdLockTimeout['reason'];
  /** The holder when the queue was last read, if known. */
  readonly holder?: LockHolder | undefined;
  /** Why requests fail at the moment, if they do. */
  readonly trouble?: Error | undefined;
}

/** Returns the error for a timeout. Its message names the holder, the last request error and a self-deadlock, if there is one. */
export function timedOut(
  path: string,
  { timeout, isInsideHold }: Pick<AttemptLimits, 'timeout' | 'isInsideHold'>,
  { reason, holder, trouble }: WaitState,
): EtcdLockTimeout {
  const isHeld = reason === 'held';
  const who = holder ? `; ${isHeld ? 'held' : 'last held'} by ${describeHolder(holder)}` : '';
  const why = trouble ? `; ${trouble.message}` : isHeld ? '' : '; etcd has not answered';
  const deadlock = isInsideHold?.() ? DEADLOCK : '';
  return new EtcdLockTimeout(`${path} not acquired within ${timeout} s${who}${why}${deadlock}`, {
    reason,
    holder,
    failures: failuresOf(trouble),
  });
}

/** One attempt to acquire a lock: what ends it early, which failures it retries, and which error its caller gets. */
export class Attempt {
  readonly #store: LockStore;
  readonly #path: string;
  readonly #limits: AttemptLimits;
  readonly #released: Source | undefined;
  #causes: Scope;
  #ended = new Scope();
  /** The first entry of the queue when it was last read, if that is not the own entry. */
  #first: Entry | undefined;
  /** The last function passed to `saw`, until it has read the entry. */
  #saw: Standing['first'];
  /** Error of the last failed request, preferably one that names members; undefined after a request that succeeded. */
  #trouble: Error | undefined;
  /** Whether a request has succeeded; undefined before the first one, while another call of this process is under way. */
  #isAnswered: boolean | undefined = false;

  /**
   * @param path directory of the queue
   * @param released aborts when `release()` is called before the attempt ends
   */
  constructor(store: LockStore, path: string, limits: AttemptLimits, released?: Source) {
    this.#store = store;
    this.#path = path;
    this.#limits = limits;
    this.#released = released;
    this.#causes = this.#begin();
  }

  /** Begins again after the own entry was lost: with the same limits, but without the causes added by `abortWith`. */
  restart(): void {
    this.dispose();
    this.#ended = new Scope();
    this.#causes = this.#begin();
  }

  /**
   * Aborts when the attempt ends early, always with the same internal reason. A caller's abort reason could be mistaken for the
   * error of a request, and be retried. {@link Attempt.explain} returns the real reason.
   */
  get signal(): Source {
    return this.#ended;
  }

  get blocking(): boolean {
    return this.#limits.blocking;
  }

  /** When the timeout has passed. */
  get deadline(): Deadline {
    return this.#limits.deadline;
  }

  /** Makes the attempt end early when `source` aborts, for the reason of `source`. */
  abortWith(source: Source): void {
    this.#causes.abortWith(source);
  }

  /** @throws the reason why the attempt ended early, if it did */
  assertActive(): void {
    this.#causes.throwIfAborted();
  }

  /**
   * Sets the holder to the first entry of the queue, or to undefined if that is the own entry. If that entry must be read, the
   * holder changes later, and only if the attempt may wait.
   */
  saw(first: Standing['first'], ownKey: string): void {
    this.#saw = first;
    if (typeof first !== 'function') this.#setFirst(first, ownKey);
    else if (this.blocking) void this.#read(first, ownKey);
  }

  /** Records that the attempt waits for another call of this process, until its first request. */
  waitsForTurn(): void {
    this.#isAnswered = undefined;
  }

  get state(): WaitState {
    const trouble = this.#trouble;
    const isOutage = trouble ? isTransient(trouble) : this.#isAnswered === false;
    return { reason: isOutage ? 'unreachable' : 'held', holder: this.holder, trouble };
  }

  /** The holder when the queue was last read, if known. */
  get holder(): LockHolder | undefined {
    return this.#first && holderOf(this.#path, this.#first);
  }

  /**
   * Calls `call` until it succeeds or a retry is pointless, with growing delays in between. Retries until the timeout, or forever
   * without one. But stops after three tries if the attempt must not wait for other holders. Stops then too if it has no timeout and
   * the cluster has never answered, unless it outlasts outages: a wrong address is more likely than an outage.
   * @param call gets the number of tries that have failed so far
   */
  readonly retry = async <T>(call: (failed: number) => Promise<T>): Promise<T> => {
    const backoff = new Backoff();
    this.#isAnswered ??= false;
    for (let failed = 0; ; failed += 1) {
      try {
        const result = await call(failed);
        this.#isAnswered = true;
        this.#trouble = undefined;
        return result;
      } catch (error) {
        if (!mayRetry(error) || (!this.#retriesForever && failed + 1 >= MOST_TRIES)) throw error;
        // A request that the rate limit refused names no member.
        if (!this.#trouble || failuresOf(error).length > 0) this.#trouble = error;
      }
      await sleep(backoff.next(), this.signal);
    }
  };

  /**
   * Returns the error for the caller: the reason why the attempt ended early, or else `error`. Adds the holder and the failures
   * of members to an `EtcdLockExpired`, but never changes the reason of the caller's signal.
   */
  explain(error: unknown): unknown {
    const { aborted, reason } = this.#causes;
    const why = aborted ? reason : error;
    const own = this.#limits.signal?.aborted && why === this.#limits.signal.reason;
    if (own || !(why instanceof EtcdLockExpired)) return why;
    const holder = why.holder ?? this.holder;
    const failures = why.failures.length > 0 ? why.failures : failuresOf(this.#trouble);
    if (holder === why.holder && failures.length === why.failures.length) return why;
    const { message, cause, isEndedByStore } = why;
    return new EtcdLockExpired(message, { cause, holder, failures, isEndedByStore });
  }

  dispose(): void {
    this.#causes.dispose();
  }

  /** Leaves the holder as it is if the read fails, or if the queue has been read again by then. */
  async #read(first: () => Promise<Entry | undefined>, ownKey: string): Promise<void> {
    try {
      const entry = await first();
      if (this.#saw === first) this.#setFirst(entry, ownKey);
    } catch (error) {
      debug('%s: the holder could not be read: %s', this.#path, error);
    }
  }

  #setFirst(first: Entry | undefined, ownKey: string): void {
    this.#saw = undefined;
    this.#first = first?.key === ownKey ? undefined : first;
  }

  #begin(): Scope {
    const { signal, deadline } = this.#limits;
    const ended = this.#ended;
    const causes = new Scope(signal, this.#released, this.#store.pending.closing);
    addAbortListener(causes, () => ended.abort(ENDED));
    return causes.abortAt(deadline, () => timedOut(this.#path, this.#limits, this.state));
  }

  get #retriesForever(): boolean {
    const { blocking, timeout, outlastsOutages } = this.#limits;
    return blocking && (timeout > 0 || outlastsOutages === true || this.#store.clusterId !== undefined);
  }
}
