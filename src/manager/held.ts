import type { LockMode } from '../recipe/entry-value.ts';

/** A lock while it is held. */
export interface Held {
  readonly name: string;
  readonly mode: LockMode;
  /** Its entry in the queue. */
  readonly key: string;
  /** Which of all requests it is; part of what the entry carries. */
  readonly uuid: string;
  /**
   * Greater than that of every hold before: a resource that refuses a lower one than it has seen is safe from a holder that
   * does not know yet that it lost the lock. Readers that hold together have a token each.
   */
  readonly fencingToken: bigint;
  /**
   * Aborts with an `EtcdLockLost` that says why when the lock is lost: when a renewal finds its entry gone or changed, when
   * the client is closed, and at the latest TTL − margin after the last successful renewal was sent. A release does not abort it.
   */
  readonly signal: AbortSignal;
  /** Seconds the lock is sure to stay ours unless renewed; 0 when it is not ours. True also right after the process was stopped. */
  expiresIn(): number;
  /**
   * For the moment before something that must not happen without the lock. True also right after the process was stopped.
   * @throws {EtcdLockLost} when the lock was lost
   * @throws {EtcdLockReleased} when it was given back
   */
  assertHeld(): void;
}

/** A lock held until it is released. */
export interface OpenHeld extends Held {
  /**
   * Gives the lock back. Resolves to whether it was held until now; never rejects, so that it hides no error of yours. What
   * cannot be removed within a second is retried in the background until it succeeds.
   */
  release(): Promise<boolean>;
  [Symbol.asyncDispose](): Promise<void>;
}
