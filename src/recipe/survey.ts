/** Types for the command line and the observers of an election, which read more of a queue than the recipe needs. */
import type { Source } from '../base/cancellation.ts';
import type { Entry } from './entries/entry.ts';
import { type EntryValue, parseValue } from './entries/entry-value.ts';

/** An entry with the name of its lock and the parts of its value. */
export interface ParsedEntry extends Entry, EntryValue {
  /** Name of the lock. */
  readonly name: string;
  /** On etcd v2: the index of the last write. A renewal is a write. */
  readonly modifiedIndex?: number;
}

/** The queue of a lock, and the other keys in its directory. */
export interface LockQueue {
  readonly name: string;
  /** The directory of the queue. */
  readonly path: string;
  /** In the order of the queue. */
  readonly entries: readonly ParsedEntry[];
  /** Other keys in the directory: not entries, so locks ignore them. */
  readonly ignored: readonly string[];
}

/** Fields of every survey: the store's index (on etcd v3: revision) at the time of the read, and the cluster that answered. */
export interface ReadAt {
  readonly index: number;
  readonly clusterId: string | undefined;
}

export interface QueueSurvey extends ReadAt {
  readonly queue: LockQueue;
}

export interface QueuesSurvey extends ReadAt {
  readonly queues: readonly LockQueue[];
}

/** A change of a queue. `re-created`: an entry was created again under its old key. On etcd v3, an expiry is also `removed`. */
export interface QueueChange {
  readonly how: 'written' | 're-created' | 'removed' | 'expired';
  /** The entries after the change, in the order of the queue. */
  readonly entries: readonly ParsedEntry[];
  readonly index: number;
}

/**
 * Result of a removal. `gone`: the entry was removed or expired before. `changed`: its value has changed. If the answer was
 * lost, the entry is read again: it is `absent`, still `present`, or `changed`.
 */
export type Removal = 'removed' | 'gone' | 'changed' | 'absent' | 'present';

/** A change of one key, as the stream of events of a store shows it. */
export interface KeyChange {
  readonly how: 'written' | 'removed' | 'expired';
  /** On etcd v2, the removal of a directory also removes all keys below it. */
  readonly key: string;
  /** The entry after the change. Absent after a removal, and if the key is no entry. */
  readonly entry?: ParsedEntry;
  /** The store's index (on etcd v3: revision) after the change. */
  readonly index: number;
}

export interface PruneOptions {
  /** Whether to yield the names only, and remove nothing. */
  readonly dryRun: boolean;
}

/** Options of a read of a queue. */
export interface SurveyOptions {
  /** Aborts the read, which then rejects with the signal's reason. */
  readonly signal?: Source | undefined;
  /** Whether the TTLs of the entries are needed. On etcd v3 these take further requests, which need the leader. Default true. */
  readonly ttls?: boolean | undefined;
}

/** Reads the queue of one lock, as of the last confirmed write, and waits for its changes. Each store has one. */
export interface QueueSurveyor {
  /** @throws {TypeError | RangeError} if the name is invalid in this store; the message shows it */
  lock(name: string, options?: SurveyOptions): Promise<QueueSurvey>;
  /**
   * Waits for the next changes after a survey. Resolves to undefined if the queue must be read again: after a long silence, if
   * changes were missed, or if another cluster answered.
   */
  next(
    survey: QueueSurvey,
    options: SurveyOptions & { readonly signal: Source },
  ): Promise<readonly QueueChange[] | undefined>;
}

/** Reads and repairs queues for the command line. */
export interface Surveyor extends QueueSurveyor {
  /** @throws {TypeError | RangeError} if the name is invalid in this store; the message shows it */
  checkName(name: string): void;
  /** @throws {RangeError} if no lock name can begin with `prefix` */
  checkPrefix(prefix: string): void;
  /** Reads the queues of all locks whose name begins with `prefix`. */
  locks(prefix: string, options?: SurveyOptions): Promise<QueuesSurvey>;
  /**
   * Waits for the next changes of keys, in all queues or in that of one lock. On etcd v2, the changes of all queues leave out locks whose
   * name has a part that begins with "_". Resolves to undefined if changes were missed, or if another cluster answered.
   * @param since the last read or change that is known
   */
  nextChanges(
    lock: string | undefined,
    since: ReadAt,
    options: { readonly signal: Source },
  ): Promise<readonly KeyChange[] | undefined>;
  /** Removes an entry, unless its value has changed since it was read. */
  remove(entry: ParsedEntry): Promise<Removal>;
  /** Reads the values of all markers, by the name of their lock. Absent on etcd v2, which does not list them: their keys begin with "_". */
  markers?(): Promise<ReadonlyMap<string, string>>;
  /** Removes what unused locks have left in the store, and yields the names of these locks. */
  prune(prefix: string, options: PruneOptions): AsyncIterable<string>;
}

/** Returns the survey after a change that followed it. */
export const afterChange = <S extends QueueSurvey>(survey: S, { entries, index }: QueueChange): S => ({
  ...survey,
  queue: { ...survey.queue, entries },
  index,
});

export const parsed = <E extends Entry>(name: string, entry: E): E & ParsedEntry => ({
  name,
  ...entry,
  ...parseValue(entry.value),
});

/**
 * Returns the number of changes of the whole store since an entry was appended; undefined if its rank is greater than `index`.
 * An entry's rank is the index of its append (on v2: since etcd 2.2).
 */
export function changesSince({ rank }: Entry, index: number): number | undefined {
  const changes = BigInt(index) - rank;
  return changes < 0n ? undefined : Number(changes);
}

/** Returns the last part of a key. */
export const lastPart = (key: string): string => key.slice(key.lastIndexOf('/') + 1);
