import { type EntryValue, isShared, type LockMode } from './entries/entry-value.ts';
import type { Entry, OwnEntry, Standing } from './store.ts';

/** Whether one entry is served before another. */
export type Before = (one: Entry, other: Entry) => boolean;

const byRank: Before = (one, other) => one.rank < other.rank;

/** Returns the entries before the own one, in no particular order. */
export const entriesBefore = (entries: readonly Entry[], own: Entry | OwnEntry): readonly Entry[] =>
  entries.filter(({ rank }) => rank < own.rank);

/** Returns the own entry's position in the queue, from 1, if the standing shows it. */
export const positionIn = ({ ahead, position }: Standing): number | undefined =>
  position ?? (ahead && ahead().length + 1);

/** Whether later entries with this mode have to wait for the entry. */
export const blocks = ({ value }: Pick<Entry, 'value'>, mode: LockMode): boolean =>
  mode === 'exclusive' || !isShared(value);

/**
 * Returns the entry that the own entry has to wait for: the nearest entry before it that blocks it. Returns undefined if the own
 * entry holds the lock.
 *
 * Exclusive mode follows the recipe of ZooKeeper and python-etcd, shared mode that of Curator's read lock.
 * @param entries the whole queue in any order, including the own entry
 */
export function nearestBlocking<E extends Entry>(
  entries: readonly E[],
  own: Entry,
  mode: LockMode,
  isBefore: Before = byRank,
): E | undefined {
  let nearest: E | undefined;
  for (const entry of entries)
    if (isBefore(entry, own) && (!nearest || isBefore(nearest, entry)) && blocks(entry, mode)) nearest = entry;
  return nearest;
}

/** Returns the holders: the first entry and, if that is shared, all later entries before the first exclusive one. */
export function holdersAmong<E extends Pick<EntryValue, 'mode'>>(inOrder: readonly E[]): readonly E[] {
  const exclusive = inOrder.findIndex(({ mode }) => mode === 'exclusive');
  return inOrder.slice(0, exclusive < 0 ? inOrder.length : Math.max(exclusive, 1));
}
