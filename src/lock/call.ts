import { EtcdLockExpired, EtcdWatchTimedOut, isTransient, type LockHolder } from '../errors.ts';
import type { KeysApi } from '../keys/api.ts';
import { Backoff, Deadline, Scope, sleep } from '../timing.ts';
import type { CheckedAcquire } from './options.ts';
import { holderOf, type Queue } from './queue.ts';

/** How often a call that must not wait tries over what may pass, such as a lost answer. */
const IMPATIENT_TRIES = 3;

/** One call of `acquire`: what ends it, what it waits out, and what its error tells. */
export class Call {
  readonly #keys: KeysApi;
  readonly #path: string;
  readonly #options: CheckedAcquire;
  readonly #scope: Scope;
  #holder: LockHolder | undefined;

  /** @param released aborts when the lock is released meanwhile */
  constructor(keys: KeysApi, path: string, options: CheckedAcquire, released: AbortSignal) {
    this.#keys = keys;
    this.#path = path;
    this.#options = options;
    this.#scope = new Scope(options.signal, released, keys.cleanups.closing);
    const deadline = options.timeout === 0 ? Deadline.never : Deadline.after(options.timeout);
    this.#scope.abortAt(deadline, () => this.#timedOut());
  }

  get signal(): AbortSignal {
    return this.#scope.signal;
  }

  /** The call also ends when this signal aborts. */
  follow(signal: AbortSignal): void {
    this.#scope.follow(signal);
  }

  /** Notes who is first in line. */
  saw(queue: Queue): void {
    this.#holder = holderOf(queue);
  }

  /** Calls again, ever more slowly, while the failure is one that passes. */
  readonly persist = async <T>(call: () => Promise<T>): Promise<T> => {
    const backoff = new Backoff();
    for (let tries = 1; ; tries += 1) {
      try {
        return await call();
      } catch (error) {
        if (!isTransient(error) || (!this.#isPatient && tries >= IMPATIENT_TRIES)) throw error;
      }
      await sleep(backoff.next(), this.signal);
    }
  };

  /** The error with the holder in it, where that is what was waited for. */
  explain(error: unknown): unknown {
    if (!(error instanceof EtcdLockExpired) || error.holder || !this.#holder) return error;
    return new EtcdLockExpired(error.message, { cause: error.cause, holder: this.#holder });
  }

  dispose(): void {
    this.#scope.dispose();
  }

  /** Without a limit, a cluster that never answered is more likely a wrong address than an outage. */
  get #isPatient(): boolean {
    return this.#options.blocking && (this.#options.timeout > 0 || this.#keys.clusterId !== undefined);
  }

  #timedOut(): EtcdWatchTimedOut {
    const holder = this.#holder;
    const left = holder?.ttl === undefined ? 'no expiry' : `${holder.ttl} s left`;
    const who = holder ? `held by ${holder.value} (${holder.key}, ${left})` : 'the queue could not be read';
    return new EtcdWatchTimedOut(`${this.#path} not acquired within ${this.#options.timeout} s: ${who}`, { holder });
  }
}
