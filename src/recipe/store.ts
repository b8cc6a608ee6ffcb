/**
 * The port: what the recipe needs of a store. `v2/locks/` implements it on etcd v2, and `test/suites/stores/` in memory.
 *
 * A call rejects with `EtcdConnectionFailed` when the store cannot be reached: the recipe retries what `isTransient` accepts.
 * After `pending.closing` has aborted, new calls reject with `EtcdClientClosed`, except `leave`: keys must still be removed.
 */
import type { Source } from '../cancellation.ts';
import type { PendingWork } from '../pending-work.ts';
import type { LockMode } from './entry-value.ts';

/** A key in the queue of a lock. */
export interface Entry {
  readonly key: string;
  /** `[shared:][id:<identity>:]<uuid>`: how the entry holds the lock, and its owner. */
  readonly value: string;
  /** Position in the queue: a lower rank is served first. On etcd v2 the number that names the key. */
  readonly rank: bigint;
  /** Whole seconds left when the entry was read, rounded up; undefined if it never expires. */
  readonly ttl: number | undefined;
}

/** An entry of this process, as of its last write. */
export interface OwnEntry extends Omit<Entry, 'ttl'> {
  readonly clusterId: string | undefined;
  /** Seconds the store keeps the entry after that write; null: for ever. */
  readonly granted: number | null;
  /** When that write was sent: milliseconds on the monotonic clock. The entry expires no earlier than `granted` after it. */
  readonly sentAt: number;
}

/** The queue of one lock, as one read showed it. */
export interface Queue {
  /** In no particular order. */
  readonly entries: readonly Entry[];
  /** Returns the entries, those served first first. */
  inOrder(): readonly Entry[];
}

/** Where the own entry stands in its queue. */
export interface Standing {
  /** The entry to wait for; undefined when the lock is held. */
  readonly behind: Entry | undefined;
  /** Of the hold, if held: greater than the token of every earlier hold of this lock. */
  readonly fencingToken: bigint;
  /** The entry that is served first, if known. */
  readonly first: Entry | undefined;
  /** All entries, if the store had to read them. Not to be kept: a waiter outlives many reads. */
  readonly entries: readonly Entry[] | undefined;
}

export interface StoreCall {
  /** Ends the call, which rejects with its reason. */
  readonly signal?: Source | undefined;
}

export interface StandingOptions extends StoreCall {
  /** Whether the read must see every write that was confirmed before it began. Default: the store decides. */
  readonly latest?: boolean;
}

export interface EnterOptions extends StoreCall {
  /** How many attempts have failed so far: a store gives later ones more time. */
  readonly failed: number;
}

export interface RenewalOptions extends StoreCall {
  /** Seconds until the renewal is given up, with what each member failed with. */
  readonly timeout: number;
}

/**
 * One contender's way into one queue, with at most one entry in it, whatever answers are lost.
 *
 * One call at a time, except `renew` and `verify`: they may overlap with `standing`, `changed` and each other. A `renew` whose
 * signal has aborted must not touch the ticket any more: `enter` or `leave` may already be under way.
 */
export interface Ticket {
  /** The directory of the queue. */
  readonly path: string;
  readonly value: string;
  /** The last own entry, also after it was given up. */
  readonly last: OwnEntry | undefined;
  /**
   * Makes one attempt to be in the queue with a TTL that counts from now: renews the own entry, else takes over one with this
   * ticket's value, else appends one. Resolves to undefined if the own entry turned out to be gone; then nothing was appended.
   * If the attempt rejects, it may have made an entry all the same: the next `enter` finds it, and `leave` removes it.
   * @param ttl seconds; null: the entry never expires
   */
  enter(ttl: number | null, options: EnterOptions): Promise<OwnEntry | undefined>;
  /** Takes over the first entry with this ticket's value, if the queue has one. */
  find(): Promise<OwnEntry | undefined>;
  /**
   * Reads where the own entry stands. Says "held" only by an answer that is not stale.
   * @throws {EtcdLockExpired} when the own entry is gone, or is no longer the same
   * @throws {EtcdClusterIdChanged} when another cluster answers
   */
  standing(mode: LockMode, options: StandingOptions): Promise<Standing>;
  /**
   * Waits until `on` may have changed since the last standing. Resolves to false if the wait failed, so that the next read
   * should be delayed.
   */
  changed(on: Entry, options: StoreCall): Promise<boolean>;
  /**
   * Renews the own entry with the TTL it has; never creates one.
   * @throws {EtcdLockExpired} when the entry is gone, or is no longer the same
   * @throws {EtcdClusterIdChanged} when another cluster answers
   */
  renew(options: RenewalOptions): Promise<OwnEntry>;
  /** Reads the own entry; resolves to the error that says why it is lost, if it is. */
  verify(): Promise<Error | undefined>;
  /**
   * Removes the own entry. Resolves once it is gone for sure. Rejects when the store could not be reached or the signal
   * aborts; the removal is then retried in the background until it succeeds, and is registered in `pending` by its key.
   * A later ticket with the same value takes that removal over: it must not remove the entry of the later ticket.
   */
  leave(options?: StoreCall): Promise<void>;
}

export interface TicketOptions {
  /** Whether the queue may have an entry with this value that this ticket did not append. Default false. */
  readonly mayExist?: boolean;
}

/** The queue of one lock. */
export interface QueueStore {
  /** The directory of the queue. */
  readonly path: string;
  ticket(value: string, options?: TicketOptions): Ticket;
  /** Reads the queue. The read sees every write that was confirmed before it began. */
  read(options?: StoreCall): Promise<Queue>;
  /** Removes an entry of this queue if it is still as it was read. Resolves once that is certain, either way. */
  evict(entry: Entry, options: StoreCall): Promise<void>;
}

/** Where the queues of locks live. */
export interface LockStore {
  /** The cluster that answered last; undefined before the first answer. */
  readonly clusterId: string | undefined;
  /** What `close()` of the client waits for. */
  readonly pending: PendingWork;
  /**
   * Makes no request.
   * @throws {TypeError | RangeError} for a name that this store cannot have, with the name in the message
   */
  queue(lock: string): QueueStore;
  /** Reads all queues below the lock prefix, by lock name. */
  list(): Promise<ReadonlyMap<string, Queue>>;
}

/** What a `Lock` or `LockManager` is made with: an `EtcdClient`. */
export interface LockClient {
  readonly store: LockStore;
}
