import type { Contender } from '../v2/locks/queue.ts';
import { isShared, type LockMode } from './entry-value.ts';

/** What a listing means for one contender. */
export type Decision =
  | { readonly state: 'held' }
  /** Not yet: read again once this entry has changed. */
  | { readonly state: 'wait'; readonly on: Contender }
  /** The own entry is not in the listing. */
  | { readonly state: 'gone' };

/** Decides by the entries, whatever their order, what the one at `ownKey` has to wait for. */
export type Rule = (entries: readonly Contender[], ownKey: string) => Decision;

/** First in line owns, everyone else waits for the nearest entry before its own (the recipe of ZooKeeper and python-etcd). */
export const exclusive: Rule = (entries, ownKey) => decide(entries, ownKey, 'exclusive');

/** Whoever has no exclusive entry before its own owns, beside others; everyone else waits for the nearest of those (Curator's read lock). */
export const shared: Rule = (entries, ownKey) => decide(entries, ownKey, 'shared');

/** Whether an entry holds up later ones of that mode. */
export const holdsUp = ({ value }: Contender, mode: LockMode): boolean => mode === 'exclusive' || !isShared(value);

/**
 * In-order names have one width since etcd 2.2, so text order and number order agree. Where an entry of another width is
 * left over they may not: then only who is first in both owns, so that this never disagrees with python-etcd's text order.
 */
function decide(entries: readonly Contender[], ownKey: string, mode: LockMode): Decision {
  const own = entries.find(({ key }) => key === ownKey);
  if (!own) return { state: 'gone' };
  const obstacles = { before: own, mode };
  const on = nearest(entries, bySequence, obstacles) ?? nearest(entries, byText, obstacles);
  return on ? { state: 'wait', on } : { state: 'held' };
}

type Order = (one: Contender, other: Contender) => boolean;

const bySequence: Order = (one, other) => one.sequence < other.sequence;
const byText: Order = (one, other) => one.key < other.key;

/** The last of the entries before that one which hold it up. */
function nearest(
  entries: readonly Contender[],
  isBefore: Order,
  { before, mode }: { readonly before: Contender; readonly mode: LockMode },
): Contender | undefined {
  let found: Contender | undefined;
  for (const entry of entries)
    if (isBefore(entry, before) && (!found || isBefore(found, entry)) && holdsUp(entry, mode)) found = entry;
  return found;
}
