import { orAborted, Scope, type Source } from '../../base/cancellation.ts';
import { createDebug } from '../../base/debug.ts';
import { Deadline } from '../../base/time.ts';
import { mayPass } from '../../errors.ts';
import { claimOf } from '../../recipe/entries/entry-value.ts';
import { lost } from '../../recipe/entries/lost.ts';
import { hedgeReadAfter } from '../../recipe/entries/timing.ts';
import { type Before, entriesBefore, type Obstacle, obstacleOf } from '../../recipe/rules.ts';
import type { Entry, Standing } from '../../recipe/store.ts';
import { ChangeWait, type WaitResult } from './change-wait.ts';
import type { V2OwnEntry } from './entry.ts';
import { isUnbroken } from './entry-requests.ts';
import { readQueue, type V2Entry, type V2Queue } from './reading.ts';
import type { V2TicketEntry } from './ticket-entry.ts';
import { ANNOUNCE_WITHIN, type Cause } from './timing.ts';

const debug = createDebug('lock');

/** Abort reason of an announcement that takes too long. */
const TOO_LATE = new Error('the announcement was not answered in time');

/** Reads where the entry of one ticket stands in its queue. Decides which reads are by quorum, and which answers are stale. */
export class V2Standings {
  readonly #entry: V2TicketEntry;
  readonly #wait: ChangeWait;
  /** The queue read right after the append of `own`. It is used once, if the own entry has not changed since. */
  #fresh: { readonly own: V2OwnEntry; readonly queue: Promise<V2Queue | undefined> } | undefined;
  #cause: Cause = 'event';
  /** What the own entry waits for, as of the last listing. */
  #obstacle: Obstacle<V2Entry> | undefined;
  /** Whether the own entry was written again to say that it holds the lock. */
  #isAnnounced = false;
  /** Index of the last listing: events after it are new. */
  #index = 0;
  /** Index of the last event: an older listing comes from a member that lags behind. */
  #eventIndex = 0;

  constructor(entry: V2TicketEntry) {
    this.#entry = entry;
    this.#wait = new ChangeWait(entry.keys);
  }

  /** Call this when the own entry was appended. @param queue the queue read right after that; resolves to undefined if there is none */
  appended(own: V2OwnEntry, queue: Promise<V2Queue | undefined>): void {
    this.#fresh = { own, queue };
  }

  /** See {@link Ticket.standing}. */
  async read(signal: Source | undefined): Promise<Standing> {
    for (;;) {
      // An event shows that the member is up to date. After silence or a failed wait it may be stale, so read by quorum.
      const quorum = this.#cause !== 'event';
      const queue = await this.#queue(quorum, signal);
      const own = this.#entry.required();
      const { entries, index, clusterId } = queue;
      const present = entries.find(({ key }) => key === own.key);
      // Others may have held the lock between the removal and the re-creation of the own key.
      if (present && clusterId === own.clusterId && !(await isUnbroken(this.#entry.keys, own, present, { signal })))
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
      ? { key: this.#entry.path, among: new Set(among.map((entry) => entry.key)) }
      : { key };
    return this.#wait.changed(watched, { after: this.#index, ttl: this.#entry.required().granted, signal });
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
    const scope = new Scope(signal).abortAt(Deadline.after(ANNOUNCE_WITHIN), () => TOO_LATE);
    try {
      return await this.#entry.announce({ signal: scope });
    } catch (error) {
      if (signal?.aborted || !(error === TOO_LATE || mayPass(error))) throw error;
      debug('%s not announced: %s', own.key, error);
      return undefined;
    } finally {
      scope.dispose();
    }
  }

  /** Ends the poll under way, if any. */
  end(): void {
    this.#wait.end();
  }

  async #queue(quorum: boolean, signal: Source | undefined): Promise<V2Queue> {
    const { keys, path } = this.#entry;
    const own = this.#entry.required();
    const fresh = this.#fresh?.own === own ? this.#fresh.queue : undefined;
    this.#fresh = undefined;
    const attemptTimeout = hedgeReadAfter(own.granted, this.#cause === 'silence');
    const queue =
      (await (fresh && signal ? orAborted(fresh, signal) : fresh)) ??
      (await readQueue(keys, path, { quorum, signal, attemptTimeout }));
    await this.#entry.removeExtras(queue, { signal });
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
