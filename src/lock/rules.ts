import type { Contender } from './queue.ts';

/** What a listing means for one contender. */
export type Decision =
  | { readonly state: 'held' }
  /** Not yet: read again once this entry has changed. */
  | { readonly state: 'wait'; readonly on: Contender }
  /** The own entry is not in the listing. */
  | { readonly state: 'gone' };

/**
 * First in line owns, everyone else waits for the nearest entry before its own (the recipe of ZooKeeper and python-etcd).
 *
 * In-order names have one width since etcd 2.2, so text order and number order agree. Where an entry of another width is
 * left over they may not: then only who is first in both owns, so that this never disagrees with python-etcd's text order.
 * @param entries in text order of their keys
 */
export function exclusive(entries: readonly Contender[], ownKey: string): Decision {
  const rank = entries.findIndex(({ key }) => key === ownKey);
  const own = entries[rank];
  if (!own) return { state: 'gone' };
  const [nearest = entries[rank - 1]] = entries
    .filter(({ sequence }) => sequence < own.sequence)
    .sort((a, b) => (a.sequence > b.sequence ? -1 : 1));
  return nearest ? { state: 'wait', on: nearest } : { state: 'held' };
}
