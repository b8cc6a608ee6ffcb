/**
 * The port: what the recipe needs of a store. `v2/locks/` and `v3/locks/` implement it on etcd, `both/` on these two, and
 * `test/suites/stores/` in memory.
 *
 * A call rejects with `EtcdConnectionFailed` when the store cannot be reached. The recipe retries errors that `isTransient`
 * accepts.
 *
 * After `pending.closing` has aborted, new calls reject with `EtcdClientClosed`, except `leave`: keys must still be removed.
 */
import type { Source } from '../base/cancellation.ts';
import type { PendingWork } from '../base/pending-work.ts';
import type { Deadline } from '../base/time.ts';
import type { Entry } from './entries/entry.ts';
import type { QueueSurveyor } from './survey.ts';

export type { Entry };

/** An entry of this process, as of its last write. */
export interface OwnEntry extends Omit<Entry, 'ttl'> {
  readonly clusterId: string | undefined;
  /** Seconds for which the store keeps the entry after that write; null: forever. */
  readonly granted: number | null;
  /** When that write was sent: milliseconds on the monotonic clock. The entry expires `granted` seconds later at the earliest. */
  readonly sentAt: number;
  /** URL of the member that answered the last renewal, if the store knows. */
  readonly member?: string | undefined;
}

/** The queue of one lock, as one read showed it. */
export interface Queue {
  /** In no particular order. */
  readonly entries: readonly Entry[];
  /** Returns the entries in the order in which they are served. */
  inOrder(): readonly Entry[];
}

/** The own entry's position in its queue: whether it holds the lock, and if not, which entry it waits for. */
export interface Standing {
  /** The entry to wait for; undefined when the lock is held. */
  readonly behind: Entry | undefined;
  /** The fencing token, valid if the lock is held: greater than the token of every earlier hold that this one excludes. */
  readonly fencingToken: bigint;
  /**
   * The entry that is served first, if known, or a function that reads this entry. Only messages need it: do not make the wait
   * depend on the read, which may fail.
   */
  readonly first: Entry | undefined | (() => Promise<Entry | undefined>);
  /** Position of the own entry in the queue, from 1, if that is known without `ahead`; entries of locks below this name may count, too. */
  readonly position?: number | undefined;
  /**
   * Returns the entries before the own one, in no particular order, if the store had to read them. Do not keep this function while
   * waiting: a long queue takes much memory.
   */
  readonly ahead?: (() => readonly Entry[]) | undefined;
  /** The own entry, if this call changed how long the store keeps it. Default: as of its last write. */
  readonly own?: OwnEntry | undefined;
}

/**
 * The fencing tokens of one hold: one for each store of etcd that it uses, so two with `api: 'both'`. In one store, each exclusive hold
 * has a greater token than all holds before it; tokens of different stores cannot be compared.
 */
export interface FencingTokens {
  /** The number in the key of the entry on etcd v2. */
  readonly v2?: bigint;
  /** The revision of etcd v3 when the lock was acquired. */
  readonly v3?: bigint;
}

/** Options of any call to a store. */
export interface StoreCall {
  /** Aborts the call, which then rejects with the signal's reason. */
  readonly signal?: Source | undefined;
}

export interface StandingOptions extends StoreCall {
  /** Whether the read must see every write that was confirmed before it began. Default: the store decides. */
  readonly latest?: boolean;
}

/** TTL and renewal of an entry. */
export interface Terms {
  /** Seconds; null: it never expires. */
  readonly ttl: number | null;
  /** Whether the entry will be renewed from then on. If not, nothing may keep it past its TTL. */
  readonly keepAlive: boolean;
}

export interface EnterOptions extends StoreCall, Pick<Terms, 'keepAlive'> {
  /** How many tries to enter have failed so far. A store gives later tries more time. */
  readonly failed: number;
  /**
   * The replaceable ticket of an ended hold in this queue. If possible, its entry is removed in the same step that appends the
   * new one. The caller must call its `leave` in every case.
   */
  readonly replacing?: Ticket | undefined;
}

export interface RenewalOptions extends StoreCall {
  /** Seconds until the renewal times out, with an error that lists the failure of each member. */
  readonly timeout: number;
}

export interface LeaveOptions extends StoreCall {
  /** Until when the entry stays in the queue, without renewals. Default: it is removed at once. */
  readonly until?: Deadline | undefined;
}

/**
 * Enters, renews and removes the own entry of one waiter or holder in one queue. Unlike an {@link Entry}, a ticket exists before
 * and after its key does. It leaves at most one entry in the queue, even if answers are lost.
 *
 * One call at a time, except `renew` and `verify`: they may overlap with `standing`, `changed` and each other. A `renew` whose
 * signal has aborted must no longer change the ticket: `enter` or `leave` may already be under way.
 */
export interface Ticket {
  /** The directory of the queue. */
  readonly path: string;
  readonly value: string;
  /** The last own entry, also after its removal. */
  readonly last: OwnEntry | undefined;
  /** The tokens of the last hold. Valid only after a standing has shown the lock as held. Default: none. */
  readonly fencingTokens?: FencingTokens | undefined;
  /** Whether `enter` of another ticket can remove the own entry, as {@link EnterOptions.replacing}. Default: it cannot. */
  readonly isReplaceable?: boolean;
  /**
   * Tries once to enter the queue, with a TTL that counts from now. Renews the own entry; if there is none, takes over an entry
   * with this ticket's value; if there is none either, appends one. Resolves to undefined if the own entry was found to be gone;
   * then nothing was appended. A call that rejects may still have created an entry: the next `enter` finds that entry, and
   * `leave` removes it.
   * @param ttl seconds; null: the entry never expires
   */
  enter(ttl: number | null, options: EnterOptions): Promise<OwnEntry | undefined>;
  /** Takes over the first entry with this ticket's value, if the queue has one. */
  find(options?: StoreCall): Promise<OwnEntry | undefined>;
  /**
   * Reads the own entry's position in the queue. Reports the lock as held only if the answer is not stale.
   * @throws {EtcdLockExpired} when the own entry is gone, or is no longer the same
   * @throws {EtcdClusterIdChanged} when another cluster answers
   */
  standing(options: StandingOptions): Promise<Standing>;
  /**
   * Waits until the entry `on` may have changed since the last `standing`, and resolves to true. If the own entry has a limit, a
   * change of another entry before it may also end the wait. Resolves to false if the wait failed: the caller should then pause
   * before the next read.
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
   * Calls `onLost` once if the store notices, before a renewal does, that the own entry is gone or no longer the same. Returns a
   * function that stops the watch. In a store without this method, only `renew` finds a loss.
   */
  watch?(onLost: (why: Error) => void): () => void;
  /**
   * Removes the own entry, or leaves it to expire: with `until`, sets its TTL to the time left, rounded up to whole seconds.
   * Resolves once the entry is certainly gone or has that TTL; a lost entry is not created again. Rejects when the store could
   * not be reached or the signal aborts. The work is then retried in the background until it succeeds, or until the store
   * refuses it and the entry has expired; after `until`, a retry removes the entry. While this work lasts, `pending` lists the
   * entry's key, or its queue and value if the key is unknown. A later ticket with the same value takes over the removal, so that
   * the removal never deletes the later ticket's entry.
   */
  leave(options?: LeaveOptions): Promise<void>;
}

export interface ReadOptions extends StoreCall {
  /** Whether the entries need their TTL, which some stores must ask for one by one. Default false. */
  readonly ttls?: boolean;
}

export interface TicketOptions {
  /** Whether the queue may have an entry with this value that this ticket did not append. Default false. */
  readonly mayExist?: boolean;
  /** Whether this ticket makes one entry only, with a value that no other ticket has. Default false. */
  readonly isSingleUse?: boolean;
  /** The key of the entry that `find` takes over, for a store that does not search by the value. Default: it follows from the value. */
  readonly key?: string | undefined;
}

/** The queue of one lock. Each request has one: a class, because the closures of an object literal would take twice its memory. */
export interface QueueStore {
  /** The directory of the queue. */
  readonly path: string;
  ticket(value: string, options?: TicketOptions): Ticket;
  /** Reads the queue. The read sees every write that was confirmed before it began. */
  read(options?: ReadOptions): Promise<Queue>;
  /** Removes an entry of this queue if its key still has the same value. Resolves once no such entry is left. */
  evict(entry: Entry, options: StoreCall): Promise<void>;
}

/** The value of a {@link MarkerStore}, as one read or write showed it. */
export interface Marker {
  readonly value: string;
  /** Changes with each write. */
  readonly rank: bigint;
}

export interface AdvanceOptions {
  /** The marker to replace; undefined: there is none. */
  readonly from: Marker | undefined;
  /** The new value. Must differ from every value that any client has written. */
  readonly to: string;
  /** Minimum seconds for which the store keeps the new value, counted from this call. */
  readonly ttl: number;
}

/**
 * One small value beside the queue of a lock: which tick of a job was begun last. It outlives the holds. It is not part of the
 * queue, so no listing of queues contains it, and no client of the lock waits for it.
 */
export interface MarkerStore {
  readonly key: string;
  /** Reads the marker; undefined if there is none. The read sees every write that was confirmed before it began. */
  read(call: StoreCall): Promise<Marker | undefined>;
  /**
   * Replaces the marker unless it has changed. Resolves to the present marker: its value is `to` if this call has written it.
   * After a call that rejects, the outcome may be unknown: repeat the call with the same options.
   */
  advance(options: AdvanceOptions, call: StoreCall): Promise<Marker | undefined>;
  /** Removes the marker unless it has changed since it was read. Resolves to false if it has changed, or was already gone. */
  remove(marker: Marker, call: StoreCall): Promise<boolean>;
}

/** Where the queues of locks live. */
export interface LockStore {
  /** The cluster that answered last; undefined before the first answer. */
  readonly clusterId: string | undefined;
  /** What `close()` of the client waits for. */
  readonly pending: PendingWork;
  /** Reads and follows queues for observers without an entry. */
  readonly surveyor: QueueSurveyor;
  /**
   * Returns the queue of a lock. Makes no request.
   * @throws {TypeError | RangeError} for a name that is invalid in this store; the message shows the name
   */
  queue(lock: string): QueueStore;
  /**
   * Returns the marker of a lock. Makes no request.
   * @throws {TypeError | RangeError} for a name that is invalid in this store, or in a store that has no markers
   */
  marker(lock: string): MarkerStore;
  /** Reads all queues below the lock prefix. Resolves to a map from lock name to queue. */
  list(): Promise<ReadonlyMap<string, Queue>>;
}
