import { type EntryValue, isShared, type LockMode } from './entry-value.ts';
import type { Entry } from './store.ts';

/** Whether one entry is served before another. */
export type Before = (one: Entry, other: Entry) => boolean;

export const byRank: Before = (one, other) => one.rank < other.rank;

/** Whether an entry delays later ones of that mode. */
export const blocks = ({ value }: Pick<Entry, 'value'>, mode: LockMode): boolean =>
  mode === 'exclusive' || !isShared(value);

/**
 * Returns the entry that the own one has to wait for: the nearest before it that blocks it. undefined means that the own
 * one holds the lock.
 *
 * In exclusive mode that is the recipe of ZooKeeper and python-etcd; in shared mode Curator's read lock.
 * @param entries in any order, the own one among them
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

/** Returns those that hold the lock: the first, and with a first that shares it the others up to the next exclusive one. */
export function holdersAmong<E extends Pick<EntryValue, 'mode'>>(inOrder: readonly E[]): readonly E[] {
  const exclusive = inOrder.findIndex(({ mode }) => mode === 'exclusive');
  return inOrder.slice(0, exclusive < 0 ? inOrder.length : Math.max(exclusive, 1));
}
