import type { Source } from '../base/cancellation.ts';
import type { PendingWork } from '../base/pending-work.ts';

/** A key of the store: a file with a value, or a directory. */
export interface Node {
  readonly key: string;
  /** Absent for a directory, and after a removal. */
  readonly value?: string;
  readonly dir: boolean;
  /** Seconds left at the time of the answer; absent if 0, or if the key never expires. */
  readonly ttl?: number;
  /** Time of expiry by the cluster's clock (RFC 3339). */
  readonly expiration?: string;
  readonly createdIndex: number;
  readonly modifiedIndex: number;
  /** Children of a directory, in no particular order unless the read was `sorted`. */
  readonly nodes: readonly Node[];
}

/** Fields of every answer. */
export interface Answer {
  /** Id of the cluster that answered; undefined if the answer has none. */
  readonly clusterId: string | undefined;
  /** When the answered request was sent: milliseconds on the monotonic clock (`performance.now()`). */
  readonly sentAt: number;
}

/** Result of a read. */
export interface Snapshot extends Answer {
  readonly node: Node;
  /** Index of the store at the time of the read. Every later event has a greater index. */
  readonly index: number;
}

/** Result of a write or a removal. */
export interface Change extends Answer {
  /** `set`, `create`, `update`, `compareAndSwap`, `delete`, `compareAndDelete` … */
  readonly action: string;
  readonly node: Node;
  readonly prevNode?: Node;
}

/** Result of the renewal of a key's TTL. */
export interface Renewed extends Change {
  /** URL of the member that answered; absent for a store without members. */
  readonly member?: string;
}

/** Result of {@link KeysApi.createInOrder}. */
export interface Append extends Change {
  /**
   * The requested recursive listing; undefined if there is none. Settles soon after the append and never rejects. Contains the
   * new file, unless a proxy has changed the order of the requests.
   */
  readonly listing: Promise<Snapshot | undefined>;
}

/** Event that a watch reports. */
export interface KeyEvent extends Change {
  /** To continue, watch with `after: event.index`. */
  readonly index: number;
}

export interface KeysCall {
  /**
   * Ends the call, which rejects with the signal's reason. The request may have been carried out. An `AbortSignal`, or a scope
   * of this package.
   */
  readonly signal?: Source | undefined;
  /**
   * Seconds to wait for a member's answer before failing over to the next member. Default and maximum: the implementation's own
   * limit.
   *
   * A read, a renewal, and a removal with `prevIndex` are hedged: they ask the next member after this time (default 1 second)
   * and still accept the first member's answer until the implementation's limit.
   */
  readonly attemptTimeout?: number | undefined;
  /** Background work: does not keep the process alive, and may still start while the client is being closed. Default false. */
  readonly background?: boolean | undefined;
}

export interface GetOptions extends KeysCall {
  readonly recursive?: boolean;
  readonly sorted?: boolean;
  /** Reads by quorum (through raft), so that the answer is never stale. Default false. */
  readonly quorum?: boolean;
}

/** Conditions of a compare-and-swap or compare-and-delete. */
export interface Conditions {
  readonly prevValue?: string | undefined;
  readonly prevIndex?: number | undefined;
}

export interface SetOptions extends KeysCall, Conditions {
  /** Seconds, an integer ≥ 0. null or absent: never expires, also if the key had a TTL. */
  readonly ttl?: number | null | undefined;
  readonly prevExist?: boolean;
  /** Sets only the TTL: keeps the value and wakes no watcher. Requires a `ttl` and no value. */
  readonly refresh?: boolean;
  /** Makes a directory, or updates its TTL. Requires no value. */
  readonly dir?: boolean;
}

export interface CreateOptions extends KeysCall {
  /** Seconds, an integer ≥ 0. null or absent: never expires. */
  readonly ttl?: number | null | undefined;
  /** Makes a directory. Requires no value. */
  readonly dir?: boolean;
  /** Also lists the directory right after the append, in the same round trip if the store can do that. Default false. */
  readonly listing?: boolean;
}

export interface RenewOptions extends KeysCall {
  readonly prevValue: string;
  readonly prevIndex: number;
  /** Seconds, an integer ≥ 1. null removes the expiry. */
  readonly ttl: number | null;
  /**
   * Maximum seconds of the whole call, apart from waits for the rate limit. After that, it rejects with the failures of all members
   * asked. Default: long enough that each member gets its full time for an answer.
   */
  readonly timeout?: number | undefined;
}

export interface DeleteOptions extends KeysCall, Conditions {
  readonly dir?: boolean;
  readonly recursive?: boolean;
}

export interface WatchOptions extends KeysCall {
  /**
   * Reports only events with a greater index. Pass the `index` of the last snapshot or event. If absent, the watch reports only
   * events after its own start, and misses events between a read and that start.
   */
  readonly after?: number | undefined;
  readonly recursive?: boolean;
  /** Maximum seconds to wait; `Infinity` for no limit. Default 20. Used instead of `attemptTimeout`. */
  readonly timeout?: number;
  /** Called with the index of the store when the store has accepted the watch, even if there is an event already. */
  readonly started?: (index: number) => void;
}

/**
 * The calls of etcd's v2 keys API: a tree of keys with TTLs, one growing index, and events. Locks on etcd v2 are built on it.
 *
 * Calls reject with the classes of `errors.ts`. A call asks each member once, apart from retries on a stale connection; further
 * retries are up to the caller. A hedged call (a read, a renewal, or a removal with `prevIndex`) asks members again while one of its
 * attempts is still unanswered.
 *
 * A read, a conditional write and a removal may be sent to a second member if the first one gave no clear answer. An append
 * ({@link KeysApi.createInOrder}), and a {@link KeysApi.set} without `prevValue` and `prevIndex`, never are: they reject with
 * `outcomeUnknown`. `prevExist` does not count as a condition here.
 */
export interface KeysApi {
  /** Directory of the lock queues: an absolute key such as `/_locks`. */
  readonly lockPrefix: string;
  /** Id of the cluster that answered last; undefined before the first answer. */
  readonly clusterId: string | undefined;
  /** Pending work that may leave a key behind. `close()` waits for it. */
  readonly cleanups: PendingWork;

  get(key: string, options?: GetOptions): Promise<Snapshot>;
  set(key: string, value: string | undefined, options?: SetOptions): Promise<Change>;
  /** Appends a file (or a directory) to a directory, under a name that is greater than every earlier one. */
  createInOrder(dir: string, value: string | undefined, options?: CreateOptions): Promise<Append>;
  /** Renews the TTL of a file if the file is unchanged. Wakes no watcher if the store can do that. */
  renew(key: string, options: RenewOptions): Promise<Renewed>;
  delete(key: string, options?: DeleteOptions): Promise<Change>;
  /**
   * Waits for the first event on the key after an index. Resolves to undefined if there was none within the timeout, or if the
   * store ended the watch without an event. In both cases read the key again.
   */
  watch(key: string, options?: WatchOptions): Promise<KeyEvent | undefined>;
}
