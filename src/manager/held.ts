import type { LockMode } from '../recipe/entry-value.ts';

/** A lock while it is held. */
export interface Held {
  readonly name: string;
  readonly mode: LockMode;
  /** The key of its entry. */
  readonly key: string;
  /** Identifies this hold; part of the entry's value. */
  readonly uuid: string;
  /**
   * Greater than the token of every earlier hold. A resource that refuses tokens lower than the highest it has seen is safe
   * from a holder that does not know yet that it lost the lock. Holders that share a lock have a token each.
   */
  readonly fencingToken: bigint;
  /**
   * Aborts with an `EtcdLockLost` when the lock is lost: when a renewal finds the entry gone or changed, when the client is
   * closed, or TTL − margin after the last successful renewal was sent. A release does not abort it.
   */
  readonly signal: AbortSignal;
  /** Returns the seconds for which the lock is certain to be held, even if no renewal succeeds; 0 once lost or released. */
  expiresIn(): number;
  /**
   * Throws unless the lock is held. Call it right before work that must not happen without the lock. Notices a loss that no
   * timer could report yet, such as after the process was suspended.
   * @throws {EtcdLockLost} when the lock was lost
   * @throws {EtcdLockReleased} when it was released
   */
  assertHeld(): void;
}

/** A lock that is held until its owner releases it. */
export interface OpenHeld extends Held {
  /**
   * Releases the lock. Resolves to whether it was held until now. Never rejects, so it hides no error of yours. A removal that
   * takes longer than a second is retried in the background until it succeeds.
   */
  release(): Promise<boolean>;
  [Symbol.asyncDispose](): Promise<void>;
}
