import { holdersAmong, obstacleOf } from '../../recipe/rules.ts';
import type { KeyChange, LockQueue, ParsedEntry, QueueChange, QueuesSurvey, ReadAt } from '../../recipe/survey.ts';
import { diff, type EventKind, eventsOf, type QueueEvent } from '../queues/changes.ts';
import { queuedUntil } from '../queues/durations.ts';
import { type ClientKind, kindOf } from './kinds.ts';

/** When an entry expires unless it is renewed, as last seen. */
export interface SeenTtl {
  /** Seconds that were left; undefined: the entry never expires. */
  readonly left: number | undefined;
  /** When that was seen. All times of the model are milliseconds since the epoch, by the clock of this host. */
  readonly at: number;
}

/** An entry of a queue, with what was seen of it. */
export interface LiveEntry {
  readonly entry: ParsedEntry;
  readonly kind: ClientKind;
  /** When this process first saw it. */
  readonly seenAt: number;
  /** Since when it is in the queue; undefined if it was there before, and does not say since when. */
  readonly queuedAt: number | undefined;
  /** Since when it holds the lock; undefined if it waits, or if nobody saw it acquire the lock. */
  readonly heldAt: number | undefined;
  /** undefined if no read has shown it yet: events of etcd v3 do not. */
  readonly ttl: SeenTtl | undefined;
  /** When the TTL was last seen to be longer than before. */
  readonly renewedAt: number | undefined;
}

/** A lock that has entries. */
export interface LiveLock {
  readonly name: string;
  readonly path: string;
  readonly holders: readonly LiveEntry[];
  readonly waiters: readonly LiveEntry[];
}

export interface HistoryEvent {
  readonly at: number;
  readonly kind: EventKind;
  readonly entry: ParsedEntry;
}

/** Since when etcd was not seen, and why. */
export interface Outage {
  readonly since: number;
  readonly message: string;
}

export interface LiveOptions {
  readonly api: 'v2' | 'v3';
  /** Only locks whose name begins with this. */
  readonly prefix: string;
  /** Maximum number of locks. Others are counted, but not shown. Default 10,000. */
  readonly mostLocks?: number;
}

/** Number of events that are kept. */
const HISTORY = 1000;
/** Seconds. Two reads of a TTL in whole seconds differ by so much without a renewal. */
const ROUNDING = 2;

type QueueName = Pick<LockQueue, 'name' | 'path'>;
type Filter = (entry: ParsedEntry) => boolean;

const ALL: Filter = () => true;
const NONE: Filter = () => false;

interface Update {
  readonly entries: readonly ParsedEntry[];
  readonly at: number;
  /** Which TTLs have just been read. */
  readonly ttlsOf: Filter;
  /** The entries that were seen to be added, and to acquire the lock, at this moment. */
  readonly queued?: ReadonlySet<string>;
  readonly acquired?: ReadonlySet<string>;
}

/** The queues of all locks as they are now, and what happened to them since the start. Only what is called here changes it. */
export class LiveModel {
  readonly #options: Required<LiveOptions>;
  /** By the path of the queue. */
  readonly #locks = new Map<string, LiveLock>();
  readonly #history: HistoryEvent[] = [];
  #recorded = 0;
  #readAt: ReadAt | undefined;
  #seenAt: number | undefined;
  #outage: Outage | undefined;
  /** Locks that are not shown, by their path. */
  readonly #omitted = new Set<string>();

  constructor(options: LiveOptions) {
    this.#options = { mostLocks: 10_000, ...options };
  }

  get locks(): readonly LiveLock[] {
    return [...this.#locks.values()];
  }

  lock(path: string): LiveLock | undefined {
    return this.#locks.get(path);
  }

  /** The last events of all locks, the oldest first. */
  get history(): readonly HistoryEvent[] {
    return this.#history;
  }

  /** Number of all events so far, also of those that are not kept. */
  get recorded(): number {
    return this.#recorded;
  }

  /** When etcd was last seen; undefined before the first listing. */
  get seenAt(): number | undefined {
    return this.#seenAt;
  }

  get outage(): Outage | undefined {
    return this.#outage;
  }

  /** Number of locks that are not shown, because there are too many. */
  get omitted(): number {
    return this.#omitted.size;
  }

  /** Takes over a listing of all queues, on etcd v3 without TTLs, which may be the first one, or follow an outage. */
  listed({ queues, index, clusterId }: QueuesSurvey, at: number): void {
    const isOther = this.#readAt !== undefined && this.#readAt.clusterId !== clusterId;
    const isFirst = this.#readAt === undefined || isOther;
    if (isOther) this.#locks.clear();
    this.#omitted.clear();
    this.#seen({ index, clusterId }, at);
    const used = queues.filter(({ entries }) => entries.length > 0);
    const paths = new Set(used.map(({ path }) => path));
    const gone = [...this.#locks.values()].filter(({ path }) => !paths.has(path));
    for (const queue of [...gone.map(({ name, path }) => ({ name, path, entries: [] })), ...used]) {
      const before = entriesOf(this.#locks.get(queue.path));
      this.#record(isFirst ? [] : diff(before, queue.entries), at);
      this.#update(queue, { entries: queue.entries, at, ttlsOf: this.#options.api === 'v2' ? ALL : NONE });
    }
  }

  /** Takes over a read of one queue, which shows the TTLs. Returns whether it has the entries that the model has. */
  read(queue: LockQueue, at: number): boolean {
    const lock = this.#locks.get(queue.path);
    if (idsOf(entriesOf(lock)) !== idsOf(queue.entries)) return false;
    this.#seenAt = at;
    if (lock) this.#update(queue, { entries: queue.entries, at, ttlsOf: ALL });
    return true;
  }

  changed({ how, key, entry, index }: KeyChange, at: number): void {
    this.#seen({ index, clusterId: this.#readAt?.clusterId }, at);
    const path = key.slice(0, key.lastIndexOf('/'));
    if (how !== 'written') {
      this.#omitted.delete(path);
      const lock = this.#locks.get(path);
      const isEntry = entriesOf(lock).some((each) => each.key === key);
      // On etcd v2, a directory may be removed with all that is in it.
      const below = isEntry ? [] : [...this.#locks.values()].filter((other) => `${other.path}/`.startsWith(`${key}/`));
      for (const each of isEntry && lock ? [lock] : below) {
        const after = isEntry ? entriesOf(each).filter((other) => other.key !== key) : [];
        this.#change(each, { how, entries: after, index }, at);
      }
    } else if (entry?.name.startsWith(this.#options.prefix)) {
      const others = entriesOf(this.#locks.get(path)).filter((other) => other.key !== key);
      const entries = [...others, entry].sort(byRank);
      // Events of etcd v3 do not show TTLs.
      const ttlsOf = this.#options.api === 'v2' ? (one: ParsedEntry) => one.key === key : NONE;
      this.#change({ name: entry.name, path }, { how, entries, index }, at, ttlsOf);
    }
  }

  /** Takes over that etcd cannot be read. What is known stays, with the time when it was last seen. */
  failed(message: string): void {
    if (this.#seenAt !== undefined) this.#outage = { since: this.#seenAt, message };
  }

  #seen(readAt: ReadAt, at: number): void {
    this.#readAt = readAt;
    this.#seenAt = at;
    this.#outage = undefined;
  }

  #change(queue: QueueName, change: QueueChange, at: number, ttlsOf: Filter = NONE): void {
    const events = eventsOf(entriesOf(this.#locks.get(queue.path)), change);
    const idsWith = (wanted: EventKind): ReadonlySet<string> =>
      new Set(events.filter(({ kind }) => kind === wanted).map(({ entry }) => idOf(entry)));
    if (
      this.#update(queue, {
        entries: change.entries,
        at,
        ttlsOf,
        queued: idsWith('queued'),
        acquired: idsWith('acquired'),
      })
    )
      this.#record(events, at);
  }

  /** Returns whether the lock is shown. */
  #update({ name, path }: QueueName, { entries, at, ttlsOf, queued, acquired }: Update): boolean {
    const lock = this.#locks.get(path);
    if (!lock && this.#locks.size >= this.#options.mostLocks) {
      this.#omitted.add(path);
      return false;
    }
    const known = new Map(liveIn(lock).map((live) => [idOf(live.entry), live]));
    const live = entries.map((entry): LiveEntry => {
      const id = idOf(entry);
      const before = known.get(id);
      const ttl = ttlsOf(entry) ? { left: entry.ttl, at } : before?.ttl;
      return {
        entry,
        kind: kindOf(entry, this.#options.api),
        seenAt: before?.seenAt ?? at,
        queuedAt: before ? before.queuedAt : queued?.has(id) ? at : queuedAt(entry, at),
        heldAt: acquired?.has(id) ? at : before?.heldAt,
        ttl,
        renewedAt: isRenewed(before?.ttl, ttl) ? at : before?.renewedAt,
      };
    });
    const count = holdersAmong(entries).length;
    if (count === 0) this.#locks.delete(path);
    else this.#locks.set(path, { name, path, holders: live.slice(0, count), waiters: live.slice(count) });
    return true;
  }

  #record(events: readonly QueueEvent[], at: number): void {
    for (const { kind, entry } of events) this.#history.push({ at, kind, entry });
    this.#recorded += events.length;
    if (this.#history.length > HISTORY) this.#history.splice(0, this.#history.length - HISTORY);
  }
}

/** Returns whom an entry waits for: the nearest one, and how many must go. undefined for a holder. */
export function waitsFor(
  lock: LiveLock,
  { entry }: LiveEntry,
): { readonly nearest: ParsedEntry; readonly count: number } | undefined {
  return obstacleOf(entriesOf(lock), entry);
}

/** Returns the waiter that has waited for the longest time, as far as that is known; undefined without waiters. */
export function longestWaiter({ waiters }: LiveLock): LiveEntry | undefined {
  const from = ({ queuedAt, seenAt }: LiveEntry): number => queuedAt ?? seenAt;
  let longest: LiveEntry | undefined;
  for (const waiter of waiters) if (!longest || from(waiter) < from(longest)) longest = waiter;
  return longest;
}

/** Returns the entries of a lock, in the order of the queue. */
export const liveIn = (lock: LiveLock | undefined): readonly LiveEntry[] =>
  lock ? [...lock.holders, ...lock.waiters] : [];

const entriesOf = (lock: LiveLock | undefined): readonly ParsedEntry[] => liveIn(lock).map(({ entry }) => entry);

/** On etcd v3, entries of one client may have the same key, one after the other. */
const idOf = ({ key, rank }: ParsedEntry): string => `${rank} ${key}`;

const idsOf = (entries: readonly ParsedEntry[]): string => entries.map(idOf).join('\n');

const byRank = (one: ParsedEntry, other: ParsedEntry): number =>
  one.rank < other.rank ? -1 : one.rank > other.rank ? 1 : one.key < other.key ? -1 : 1;

function queuedAt(entry: ParsedEntry, at: number): number | undefined {
  const seconds = queuedUntil(at)(entry);
  return seconds === undefined ? undefined : at - seconds * 1000;
}

function isRenewed(before: SeenTtl | undefined, after: SeenTtl | undefined): boolean {
  if (before?.left === undefined || after?.left === undefined || before === after) return false;
  return after.left > before.left - (after.at - before.at) / 1000 + ROUNDING;
}
