import type { Claim } from './claim.ts';

/** What a program reports of one hold. */
export interface HoldReport {
  /** @param seconds for which the holder believes to have the lock without a further renewal; 0: no longer */
  isValidFor(seconds: number): void;
  /** The holder knows that it has lost the lock, perhaps for this reason. */
  lost(why?: unknown): void;
  /** The holder has ended its work, and releases the lock now. */
  ended(): void;
}

/** What a program reports of one call. */
export interface CallReport {
  /** When it began, in milliseconds of the world. */
  readonly since: number;
  /** It has the lock, or an answer. */
  readonly settled: (outcome: string) => void;
  /** It is over, and so are all holds that it led to. */
  readonly ended: () => void;
}

export interface CallOptions {
  /** Whether it may have some locks before it has all. Default false. */
  readonly isForSeveral?: boolean;
  /** The label of all its entries, which no other call has; undefined: its entries are not watched. */
  readonly label?: string;
}

/** What a program tells the world. */
export interface Report {
  /** @param timeout seconds within which the call must be settled; 0: no limit */
  call(what: string, timeout: number, options?: CallOptions): CallReport;
  hold(claim: Claim): HoldReport;
  /** Locks of one call: it must take them in the order of their names, so that no two calls wait for each other. */
  takesInOrder(claims: readonly Claim[]): void;
  /** Somebody removes the entries of the holders of a lock by hand, from now on until the returned function is called. */
  evicts(lock: string): () => void;
  /** A job of this process runs a tick. */
  tick(job: string, at: Date): void;
  /** An error that no fault explains. */
  unexpected(what: string, error: unknown): void;
  /** A call has failed for this reason: perhaps because its entry is lost. */
  loses(why: unknown): void;
  /** Nobody uses a Lock with this uuid any more: its keys must be gone when its TTL, in seconds, has passed. */
  drops(uuid: string, ttl: number): void;
  /** A client begins to close. Returns what to call when it is closed: the keys whose value contains one of `owners` must be gone then. */
  closes(owners: Iterable<string>): () => void;
  /** Whether nothing goes wrong in this world, and there is nobody but clients of this package. */
  readonly isPlain: boolean;
  /** Whether only etcd itself removes an entry before it could expire, with its lease. */
  readonly hasNoEvictions: boolean;
}
