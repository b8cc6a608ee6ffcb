import type { LockMode } from '../recipe/entries/entry-value.ts';
import type { FencingTokens } from '../recipe/store.ts';

/** A held lock, as the callback of a request gets it. */
export interface Held {
  /** Name of the lock. */
  readonly name: string;
  /** How the lock is held. With a `limit`, the mode is `'exclusive'`, although others may hold the lock too. */
  readonly mode: LockMode;
  /** Key of the own entry in the queue. */
  readonly key: string;
  /** Identifies this hold; part of the entry's value. */
  readonly uuid: string;
  /**
   * Greater than the token of every earlier hold of this lock. Let a resource refuse every token lower than the highest it has
   * seen: then a holder that lost the lock without noticing does no harm.
   *
   * That does not apply among shared holders, nor among holders with a `limit`: they hold the lock at the same time, an earlier hold may
   * have the greater token, and on etcd v3 tokens may be equal. So do not fence the writes of such holders with one `Fence`.
   *
   * `JSON.stringify` throws for a bigint, so convert the token before you put it into JSON.
   * @example
   * await fetch(url, { method: 'POST', body: JSON.stringify({ token: String(held.fencingToken) }) });
   */
  readonly fencingToken: bigint;
  /**
   * The fencing token of each store of etcd that the hold uses. With `api: 'both'` there are two, and {@link Held.fencingToken} is
   * the one of v2. While you move from v2 to v3, let the resource compare each token with the highest it has seen from the same
   * store: see docs/moving.md.
   * @example
   * for (const [store, token] of Object.entries(held.fencingTokens)) await fence.accept(`file1 ${store}`, token);
   */
  readonly fencingTokens: FencingTokens;
  /**
   * Aborts with an `EtcdLockLost` when the lock is lost:
   * - A renewal finds the entry gone or changed, or another cluster answers.
   * - A renewal fails in a way that retries cannot fix, such as for lack of permissions.
   * - The client is closed, or `maxHold` seconds have passed.
   * - TTL − margin has passed since the last successful renewal was sent.
   *
   * Its listeners run in the async context (`AsyncLocalStorage`) of the request, whoever notices the loss.
   *
   * A release does not abort it. With `api: 'v3'`, a deletion of the entry is normally noticed within a second, for up
   * to about 150 holds per client.
   */
  readonly signal: AbortSignal;
  /**
   * Returns the seconds until the lease or `maxHold` ends by the local clock, if no renewal succeeds; 0 once this
   * process knows that the lock was lost or released. Makes no request.
   */
  expiresIn(): number;
  /**
   * Throws if this process knows that the lock was lost or released. Call it right before work that must not happen without the
   * lock. Also notices an expiry that no timer has reported yet, such as after the process was suspended; after a suspension of the
   * whole machine, only a renewal notices it, because the monotonic clock stood still. Makes no request, so it does not notice that
   * the entry was just removed.
   * @throws {EtcdLockLost} when the lock was lost
   * @throws {EtcdLockReleased} when it was released
   */
  assertHeld(): void;
  /** Returns what `JSON.stringify(held)` shows. The fencing token becomes a string of decimal digits. */
  toJSON(): Pick<Held, 'name' | 'mode' | 'key' | 'uuid'> & {
    /** Decimal digits. */
    readonly fencingToken: string;
  };
}

/** A lock held without a callback, until {@link OpenHeld.release} is called. */
export interface OpenHeld extends Held {
  /**
   * Releases the lock; with `holdAtLeast`, leaves its key to expire. Resolves to true if the lock was held until this call, to
   * false if it was lost before. Never rejects, so that in a `finally` block it cannot replace your own error. If the key cannot
   * be removed within two seconds, the removal is retried in the background.
   */
  release(): Promise<boolean>;
  /** Releases the lock at the end of an `await using` block. */
  [Symbol.asyncDispose](): Promise<void>;
}
