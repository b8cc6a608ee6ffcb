import type { Source } from '../cancellation.ts';
import type { PendingWork } from '../pending-work.ts';

/** A key of the store: a file with a value, or a directory. */
export interface Node {
  readonly key: string;
  /** undefined for a directory, and after a deletion. */
  readonly value?: string;
  readonly dir: boolean;
  /** Seconds left when answered; absent when the key never expires. */
  readonly ttl?: number;
  /** Absolute time of expiry, as the cluster reckons it (RFC 3339). */
  readonly expiration?: string;
  readonly createdIndex: number;
  readonly modifiedIndex: number;
  /** Children of a directory, in no particular order unless asked for sorted. */
  readonly nodes: readonly Node[];
}

/** What every answer says of itself. */
export interface Answer {
  /** The cluster that answered, where it tells. */
  readonly clusterId: string | undefined;
  /** When the answered attempt was sent: milliseconds on the monotonic clock (`performance.now()`). */
  readonly sentAt: number;
}

/** What a read found. */
export interface Snapshot extends Answer {
  readonly node: Node;
  /** Index of the store at the time of the read: everything later is an event with a greater index. */
  readonly index: number;
}

/** What a write did. */
export interface Change extends Answer {
  /** `set`, `create`, `update`, `compareAndSwap`, `delete`, `compareAndDelete` … */
  readonly action: string;
  readonly node: Node;
  readonly prevNode?: Node;
}

/** What an append did. */
export interface Append extends Change {
  /**
   * The recursive listing that was asked for; undefined where there is none. Settles soon, and never rejects. It shows the
   * new file, unless something between here and the store has changed the order of requests.
   */
  readonly listing: Promise<Snapshot | undefined>;
}

/** What a watch saw. */
export interface KeyEvent extends Change {
  /** Watch on with `after: event.index`. */
  readonly index: number;
}

export interface CallOptions {
  /**
   * Ends the call; it rejects with the signal's reason. The request may have been carried out. An `AbortSignal`, or what the
   * recipes have in its place.
   */
  readonly signal?: Source | undefined;
  /**
   * Seconds one member gets to answer before the next is asked; at most the implementation's own limit, its default. A
   * read, a renewal, or a removal bound to an index, still waits for those it has asked until that limit; its default is 1.
   */
  readonly attemptTimeout?: number | undefined;
  /** Work nobody waits for: does not keep the process alive, and is still done while closing. Default false. */
  readonly background?: boolean | undefined;
}

export interface GetOptions extends CallOptions {
  readonly recursive?: boolean;
  readonly sorted?: boolean;
  /** Read through consensus, so that the answer cannot be stale. Default false. */
  readonly quorum?: boolean;
}

/** Conditions of a compare-and-swap or compare-and-delete. */
export interface Conditions {
  readonly prevValue?: string | undefined;
  readonly prevIndex?: number | undefined;
}

export interface SetOptions extends CallOptions, Conditions {
  /** Seconds, an integer ≥ 0; null removes an expiry; absent: none is set. */
  readonly ttl?: number | null | undefined;
  readonly prevExist?: boolean;
  /** Sets the TTL alone: keeps the value and wakes no watcher. Goes without a value. */
  readonly refresh?: boolean;
  /** Makes a directory, or updates its TTL. Goes without a value. */
  readonly dir?: boolean;
}

export interface CreateOptions extends CallOptions {
  /** Seconds, an integer ≥ 0; null or absent: never expires. */
  readonly ttl?: number | null | undefined;
  /** Makes a directory. Goes without a value. */
  readonly dir?: boolean;
  /** Asks for a listing of the directory, too, as it is right after; in the same round trip where the store can do that. Default false. */
  readonly listing?: boolean;
}

export interface RenewOptions extends CallOptions {
  readonly prevValue: string;
  readonly prevIndex: number;
  /** Seconds, an integer ≥ 1; null removes the expiry. */
  readonly ttl: number | null;
  /** Seconds for the whole call, which then rejects with what each member failed with. Default: none. */
  readonly timeout?: number | undefined;
}

export interface DeleteOptions extends CallOptions, Conditions {
  readonly dir?: boolean;
  readonly recursive?: boolean;
}

export interface WatchOptions extends CallOptions {
  /**
   * Only events with a greater index count: the `index` of the snapshot or event last seen. Absent: only what comes after
   * the wait has begun, so that an event between a read and the wait is missed.
   */
  readonly after?: number | undefined;
  readonly recursive?: boolean;
  /** Seconds to wait at the most; `Infinity` for no limit. Default 20. */
  readonly timeout?: number;
  /** Called with the index of the store once it has taken the wait up, whether or not there is an event already. */
  readonly started?: (index: number) => void;
}

/**
 * The store the recipes stand on: a tree of keys with TTLs, one growing index, and events.
 *
 * Calls reject with the classes of `errors.ts`. One call asks each member once at the most (a read, a renewal, or a
 * removal bound to an index, again while none has answered yet); going on after that is the caller's decision. A read, a conditional write
 * and a removal may be sent to a second member where the first gave no clear answer; {@link KeysApi.createInOrder} and an unconditional {@link KeysApi.set} never: they reject with
 * `outcomeUnknown` instead.
 */
export interface KeysApi {
  /** Where locks live: an absolute key such as `/_locks`. */
  readonly lockPrefix: string;
  /** The cluster that answered last; undefined before the first answer. */
  readonly clusterId: string | undefined;
  /** Work still owed to the cluster, which `close()` waits for. */
  readonly cleanups: PendingWork;

  get(key: string, options?: GetOptions): Promise<Snapshot>;
  set(key: string, value: string | undefined, options?: SetOptions): Promise<Change>;
  /** Adds a file (or a directory) to a directory under a name greater than every earlier one. */
  createInOrder(dir: string, value: string | undefined, options?: CreateOptions): Promise<Append>;
  /** Moves the expiry of a file on, if it is unchanged; wakes no watcher where the store can do that. */
  renew(key: string, options: RenewOptions): Promise<Change>;
  delete(key: string, options?: DeleteOptions): Promise<Change>;
  /**
   * The first event on the key after an index; undefined when there was none within the timeout, or when the store
   * ended the wait without one. In both cases read again.
   */
  watch(key: string, options?: WatchOptions): Promise<KeyEvent | undefined>;
}
