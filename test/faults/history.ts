/** A period, in milliseconds on the machine's monotonic clock. */
export interface Span {
  readonly from: number;
  readonly to: number;
}

export const overlap = (a: Span, b: Span): boolean => a.from <= b.to && b.from <= a.to;

/**
 * What a contender reports of itself. A hold is the time in which the contender may act as the holder: `held` has the time
 * at which it learned of the hold, `released` the time before it sends the release.
 */
export type Event = {
  readonly at: number;
  readonly who: string;
  /** The lock, if it is not the one that the contender was ordered to acquire. */
  readonly lock?: string;
  /** Milliseconds for which the contender had been stalled by then; the python-etcd contender does not measure them. */
  readonly stalled?: number;
} & (
  | {
      readonly kind: 'asks';
      /** The value of its entry, if it is known before the append. */
      readonly uuid?: string;
      /** Timeout of the call in seconds. */
      readonly timeout?: number;
    }
  | {
      readonly kind: 'held';
      readonly token: string;
      readonly mode?: 'exclusive' | 'shared';
      /** How many may hold the lock at the same time. */
      readonly limit?: number;
      /** Deadline of the hold, for a contender that does not notice a loss. */
      readonly until?: number;
      /** What identifies its entry, if that was not known before the hold. */
      readonly uuid?: string;
    }
  /** The contender has been notified of the loss by its signal. */
  | { readonly kind: 'lost'; readonly token: string; readonly why?: string }
  | { readonly kind: 'released'; readonly token: string }
  /** The wait ended without a hold. */
  | { readonly kind: 'failed'; readonly why: string }
  /** The resource refused a request, because a later holder had used the resource before. */
  | { readonly kind: 'refused'; readonly token: string }
  /** Reported by the process that killed the contender. */
  | { readonly kind: 'died' }
);

/** A period in which a contender of this package was stalled, or the machine was. It reports this at the end of the period. */
export interface Stall extends Span {
  readonly kind: 'stalled';
  readonly who: string;
  /** Milliseconds of the period for which it was stalled. */
  readonly stalled: number;
}

/** One change of a queue, as etcd carried it out. */
export interface QueueEvent {
  readonly at: number;
  /** etcd's index: the order of the changes, whenever they were seen. */
  readonly index: number;
  readonly lock: string;
  /** Orders the entries of a queue: the number that names the key on etcd v2, its create revision on etcd v3. */
  readonly rank: bigint;
  /** `gone`: removed or expired, which look alike on etcd v3. */
  readonly action: 'queued' | 'removed' | 'expired' | 'gone';
  /** The value of the entry, or its last value. */
  readonly value: string;
  /** On etcd v3: the key of the entry, and the id of its lease. */
  readonly key?: string;
  readonly lease?: string | undefined;
}

export type FaultKind =
  | 'member killed'
  | 'leader killed'
  | 'member paused'
  | 'leader paused'
  | 'quorum paused'
  | 'member isolated'
  | 'leader isolated'
  | 'connections cut'
  | 'connections refused'
  | 'requests lost'
  | 'answers lost'
  | 'both ways lost'
  | 'network slow'
  | 'answer swallowed'
  | 'contender stopped'
  | 'contender killed'
  | 'holder stopped'
  | 'holder killed'
  | 'bridge killed'
  | 'bridge stopped';

/** A fault of members, of the network in front of them, of bridges, or of contenders. */
export interface Fault extends Span {
  readonly kind: FaultKind;
  /** Names of members, bridges or contenders. */
  readonly targets: readonly string[];
}
