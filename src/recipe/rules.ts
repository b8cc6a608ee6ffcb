import { type Claim, claimOf, isShared } from './entries/entry-value.ts';
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

/**
 * What an entry waits for: entries before it. Once `count` of the entries `among` are gone, the waiter may hold the lock: read the
 * queue again then.
 */
export interface Obstacle<E extends Entry = Entry> {
  readonly among: readonly E[];
  readonly count: number;
  /** The nearest of these entries. */
  readonly nearest: E;
}

/**
 * Returns what the own entry has to wait for; undefined if it holds the lock. Without a limit, that is the nearest entry before it
 * that blocks it. With a limit, the own entry may hold the lock together with entries that have a limit, but not with others.
 *
 * The rule of exclusive entries is that of ZooKeeper's recipe and python-etcd, and the rule of shared ones that of Curator's read
 * lock. The rule with a limit serves entries in order, as Curator's `InterProcessSemaphoreV2` does.
 * @param entries the whole queue in any order, including the own entry
 */
export function obstacleOf<E extends Entry>(
  entries: readonly E[],
  own: Entry,
  isBefore: Before = byRank,
): Obstacle<E> | undefined {
  const { mode, limit } = claimOf(own.value);
  if (limit === undefined) {
    const blocks = (entry: E): boolean => isBefore(entry, own) && (mode === 'exclusive' || !isShared(entry.value));
    const blocking = nearestOf(entries, isBefore, blocks);
    return blocking && onlyBehind(blocking);
  }
  const before = entries.filter((entry) => isBefore(entry, own));
  const unlimited = nearestOf(before, isBefore, isUnlimited);
  const beside = unlimited ? before.filter((entry) => isBefore(unlimited, entry)) : before;
  if (beside.length < limit) return unlimited && onlyBehind(unlimited);
  const nearest = nearestOf(before, isBefore, () => true);
  return nearest && { among: before, count: before.length - limit + 1, nearest };
}

/** Returns the obstacle of an entry that waits for this one only. */
export const onlyBehind = <E extends Entry>(entry: E): Obstacle<E> => ({ among: [entry], count: 1, nearest: entry });

/** Whether a new entry at the end of the queue would have to wait. */
export const wouldWait = (entries: readonly Entry[], { mode, limit }: Claim): boolean =>
  limit === undefined
    ? entries.some(({ value }) => mode === 'exclusive' || !isShared(value))
    : entries.length >= limit || entries.some(isUnlimited);

/**
 * Returns the holders. If the first entry has a limit, at most that many entries hold the lock, all before the first one without a
 * limit. Else, an exclusive first entry holds the lock alone, and a shared one together with all before the first exclusive one.
 */
export function holdersAmong<E extends Claim>(inOrder: readonly E[]): readonly E[] {
  const [first] = inOrder;
  if (!first) return [];
  const isOther = ({ mode, limit }: Claim): boolean =>
    first.limit === undefined ? mode === 'exclusive' : limit === undefined;
  const other = inOrder.findIndex(isOther);
  const together = other < 0 ? inOrder.length : Math.max(other, 1);
  return inOrder.slice(0, Math.min(together, first.limit ?? together));
}

const isUnlimited = ({ value }: Entry): boolean => claimOf(value).limit === undefined;

function nearestOf<E extends Entry>(
  entries: readonly E[],
  isBefore: Before,
  isWanted: (entry: E) => boolean,
): E | undefined {
  let nearest: E | undefined;
  for (const entry of entries) if ((!nearest || isBefore(nearest, entry)) && isWanted(entry)) nearest = entry;
  return nearest;
}
