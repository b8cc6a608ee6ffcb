/** A time from one moment to another, on the machine's monotonic clock. */
export interface Span {
  readonly from: number;
  readonly to: number;
}

/**
 * What a contender tells of itself. Where a moment has two sides, it is the one that makes a hold look longest: `held` once
 * it is known, `released` before the release is sent.
 */
export type Event = {
  readonly at: number;
  readonly who: string;
  /** Milliseconds for which the contender had stood still by then; python-etcd does not measure them. */
  readonly stalled?: number;
} & (
  | {
      readonly kind: 'asks';
      /** What its entry will carry, where that is known. */
      readonly uuid?: string;
      /** Seconds it is ready to wait. */
      readonly timeout?: number;
    }
  | {
      readonly kind: 'held';
      readonly token: string;
      readonly mode?: 'exclusive' | 'shared';
      /** When its hold ends by itself, for one that is never told of a loss. */
      readonly until?: number;
    }
  /** The contender knows: by its signal, or by looking. */
  | { readonly kind: 'lost'; readonly token: string; readonly why?: string }
  | { readonly kind: 'released'; readonly token: string }
  /** The wait ended without a hold. */
  | { readonly kind: 'failed'; readonly why: string }
  /** The resource let it do nothing: a later holder was there before. */
  | { readonly kind: 'refused'; readonly token: string }
  /** Told of it by whoever killed it. */
  | { readonly kind: 'died' }
);

/** One change of a queue, as etcd carried it out. */
export interface QueueEvent {
  readonly at: number;
  /** etcd's index: the order in which things happened, whenever they became known. */
  readonly index: number;
  readonly lock: string;
  /** The number its key is named by. */
  readonly token: bigint;
  readonly action: 'queued' | 'removed' | 'expired';
  /** What the entry carries, or carried. */
  readonly value: string;
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
  | 'holder killed';

/** Something that was done to members, to the network before them, or to contenders. */
export interface Fault extends Span {
  readonly kind: FaultKind;
  /** Names of members or contenders. */
  readonly targets: readonly string[];
}
