import { orAborted, type Source } from '../../base/cancellation.ts';
import { claimOf } from '../../recipe/entries/entry-value.ts';
import { lost } from '../../recipe/entries/lost.ts';
import { hedgeReadAfter } from '../../recipe/entries/timing.ts';
import { type Before, entriesBefore, type Obstacle, obstacleOf } from '../../recipe/rules.ts';
import type { Entry, Standing } from '../../recipe/store.ts';
import type { KeysApi } from '../keys-api.ts';
import { ChangeWait, type WaitResult } from './change-wait.ts';
import { isUnbroken, type V2OwnEntry } from './entry.ts';
import { readQueue, type V2Entry, type V2Queue } from './reading.ts';
import type { Cause } from './timing.ts';

/** Functions of a ticket that its {@link V2Standings} call. */
export interface TicketHooks {
  readonly path: string;
  /** Returns the own entry. @throws {EtcdLockExpired} if there is none */
  own(): V2OwnEntry;
  /** Returns the queue read right after the append: only once, and only if the own entry has not changed since. */
  fresh(): Promise<V2Queue | undefined>;
  /** Writes the own entry again, so that its watchers get an event. Resolves to undefined after an error that may pass. */
  announce(signal: Source | undefined): Promise<V2OwnEntry | undefined>;
  /** Removes extra keys from the queue: all other entries with the own value. */
  removeExtras(queue: V2Queue, signal: Source | undefined): Promise<void>;
}

/** Reads where the entry of one ticket stands in its queue. Decides which reads are by quorum, and which answers are stale. */
export class V2Standings {
  readonly #keys: KeysApi;
  readonly #ticket: TicketHooks;
  readonly #wait: ChangeWait;
  #cause: Cause = 'event';
  /** What the own entry waits for, as of the last listing. */
  #obstacle: Obstacle<V2Entry> | undefined;
  /** Whether the own entry was written again to say that it holds the lock. */
  #isAnnounced = false;
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
  async read(signal: Source | undefined): Promise<Standing> {
    for (;;) {
      // An event shows that the member is up to date. After silence or a failed wait it may be stale, so read by quorum.
      const quorum = this.#cause !== 'event';
      const queue = await this.#queue(quorum, signal);
      const own = this.#ticket.own();
      const { entries, index, clusterId } = queue;
      const present = entries.find(({ key }) => key === own.key);
      // Others may have held the lock between the removal and the re-creation of the own key.
      if (present && clusterId === own.clusterId && !(await isUnbroken(this.#keys, own, present, { signal })))
        throw lost(own, clusterId, 'its key was re-created, or has another value');
      const obstacle = present && obstacleIn(entries, present);
      const isGone = !present || clusterId !== own.clusterId;
      const isStale = isGone || (obstacle !== undefined && index < this.#eventIndex);
      if (isStale && !quorum) {
        this.doubt();
        continue;
      }
      if (isGone) throw lost(own, clusterId, 'its key is gone');
      this.#index = index;
      this.#obstacle = obstacle;
      if (!obstacle) this.end();
      const standing = { fencingToken: own.rank, first: queue.first, ahead: () => entriesBefore(entries, own) };
      if (obstacle) return { ...standing, behind: obstacle.nearest };
      return { ...standing, behind: undefined, own: await this.#announce(entries, own, signal) };
    }
  }

  /** See {@link Ticket.changed}. */
  async changed(on: Entry, signal: Source | undefined): Promise<boolean> {
    const woken = await this.#vacated(on, signal);
    this.#cause = woken.by;
    if (woken.by === 'event') this.#eventIndex = woken.index;
    return woken.by !== 'failure';
  }

  /**
   * Waits until the queue must be read again: the own entry may then hold the lock, or wait for fewer entries. If only one of several
   * entries must be gone, watches all of them. If more must be gone, watches the nearest: its client writes it again once it holds
   * the lock, and then only one must be gone.
   */
  #vacated({ key }: Entry, signal: Source | undefined): Promise<WaitResult> {
    const { among = [], count = 1 } = this.#obstacle ?? {};
    const isFirstWaiter = count === 1 && among.length > 1;
    const watched = isFirstWaiter
      ? { key: this.#ticket.path, among: new Set(among.map((entry) => entry.key)) }
      : { key };
    return this.#wait.changed(watched, { after: this.#index, ttl: this.#ticket.own().granted, signal });
  }

  /** Makes all reads before the next wait quorum reads. */
  doubt(): void {
    this.#cause = 'failure';
  }

  /**
   * Writes the own entry again once it holds the lock, so that waiters behind it get an event. Does so only once, and only if the own
   * entry and a later one have a limit.
   */
  async #announce(
    entries: readonly V2Entry[],
    own: V2OwnEntry,
    signal: Source | undefined,
  ): Promise<V2OwnEntry | undefined> {
    if (this.#isAnnounced || claimOf(own.value).limit === undefined) return undefined;
    if (!entries.some(({ value, rank }) => rank > own.rank && claimOf(value).limit !== undefined)) return undefined;
    this.#isAnnounced = true;
    return this.#ticket.announce(signal);
  }

  /** Ends the poll under way, if any. */
  end(): void {
    this.#wait.end();
  }

  async #queue(quorum: boolean, signal: Source | undefined): Promise<V2Queue> {
    const fresh = await (signal ? orAborted(this.#ticket.fresh(), signal) : this.#ticket.fresh());
    const attemptTimeout = hedgeReadAfter(this.#ticket.own().granted, this.#cause === 'silence');
    const queue = fresh ?? (await readQueue(this.#keys, this.#ticket.path, { quorum, signal, attemptTimeout }));
    await this.#ticket.removeExtras(queue, signal);
    return queue;
  }
}

const byText: Before = (one, other) => one.key < other.key;

/**
 * Returns what the own entry has to wait for, by number or by the text of the keys. Both orders agree for in-order names
 * since etcd 2.2, which have one width. They may differ if a leftover entry has a name of another width. An entry then holds the
 * lock only if nothing blocks it in either order, so that python-etcd, which sorts by text, never sees another holder.
 */
export const obstacleIn = <E extends Entry>(entries: readonly E[], own: Entry): Obstacle<E> | undefined =>
  obstacleOf(entries, own) ?? obstacleOf(entries, own, byText);
