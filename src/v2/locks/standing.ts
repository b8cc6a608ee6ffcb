import { orAborted, type Source } from '../../cancellation.ts';
import type { LockMode } from '../../recipe/entry-value.ts';
import { lost } from '../../recipe/lost.ts';
import { type Before, nearestBlocking } from '../../recipe/rules.ts';
import type { Entry, Standing } from '../../recipe/store.ts';
import type { KeysApi } from '../keys-api.ts';
import { ChangeWait } from './change-wait.ts';
import { isUnbroken, type V2OwnEntry } from './entry.ts';
import { readQueue, type V2Queue } from './reading.ts';
import { type Cause, hedgeReadAfter } from './timing.ts';

/** What the reads need of their ticket. */
export interface TicketHooks {
  readonly path: string;
  /** @throws {EtcdLockExpired} when there is none */
  own(): V2OwnEntry;
  /** The queue right after the own entry was appended; once, and only if nothing has happened to the entry since. */
  fresh(): Promise<V2Queue | undefined>;
  /** Removes further entries with the own value. */
  tidy(queue: V2Queue, signal: Source | undefined): Promise<void>;
}

/** Reads for one ticket, from the moment it is in the queue: decides which reads go through quorum, and which are stale. */
export class Standings {
  readonly #keys: KeysApi;
  readonly #ticket: TicketHooks;
  readonly #wait: ChangeWait;
  #cause: Cause = 'event';
  /** Index of the last listing: events after it are new. */
  #index = 0;
  /** Index of the last event: an older listing comes from a member that lags behind. */
  #eventIndex = 0;

  constructor(keys: KeysApi, ticket: TicketHooks) {
    this.#keys = keys;
    this.#ticket = ticket;
    this.#wait = new ChangeWait(keys);
  }

  /** See {@link Ticket.standing}. */
  async read(mode: LockMode, signal: Source | undefined): Promise<Standing> {
    for (;;) {
      // Only an event is a reason to trust the state of this member; silence and trouble are reasons to doubt it.
      const quorum = this.#cause !== 'event';
      const queue = await this.#queue(quorum, signal);
      const own = this.#ticket.own();
      const { entries, index, clusterId } = queue;
      const present = entries.find(({ key }) => key === own.key);
      // Others may have held the lock between the removal of a key and its creation.
      if (present && clusterId === own.clusterId && !(await isUnbroken(this.#keys, own, present, { signal })))
        throw lost(own, clusterId, 'its key was made again, or carries another value');
      const behind = present && blockingEntry(entries, present, mode);
      const isGone = !present || clusterId !== own.clusterId;
      const isStale = isGone || (behind !== undefined && index < this.#eventIndex);
      if (isStale && !quorum) {
        this.doubt();
        continue;
      }
      if (isGone) throw lost(own, clusterId, 'its key is gone');
      this.#index = index;
      if (!behind) this.end();
      return { behind, fencingToken: own.rank, first: queue.first, entries };
    }
  }

  /** See {@link Ticket.changed}. */
  async changed(on: Entry, signal: Source | undefined): Promise<boolean> {
    const ttl = this.#ticket.own().granted;
    const woken = await this.#wait.changed(on.key, { after: this.#index, ttl, signal });
    this.#cause = woken.by;
    if (woken.by === 'event') this.#eventIndex = woken.index;
    return woken.by !== 'trouble';
  }

  /** Makes the reads up to the next wait go through quorum. */
  doubt(): void {
    this.#cause = 'trouble';
  }

  /** Ends the poll under way, if any. */
  end(): void {
    this.#wait.end();
  }

  async #queue(quorum: boolean, signal: Source | undefined): Promise<V2Queue> {
    const fresh = await (signal ? orAborted(this.#ticket.fresh(), signal) : this.#ticket.fresh());
    const attemptTimeout = hedgeReadAfter(this.#ticket.own().granted, this.#cause);
    const queue = fresh ?? (await readQueue(this.#keys, this.#ticket.path, { quorum, signal, attemptTimeout }));
    await this.#ticket.tidy(queue, signal);
    return queue;
  }
}

const byText: Before = (one, other) => one.key < other.key;

/**
 * In-order names have one width since etcd 2.2, so both orders agree. They may not where an entry with a name of another
 * width is left over: then only the entry that is first in both orders holds, which never disagrees with python-etcd.
 */
export const blockingEntry = <E extends Entry>(entries: readonly E[], own: Entry, mode: LockMode): E | undefined =>
  nearestBlocking(entries, own, mode) ?? nearestBlocking(entries, own, mode, byText);
