import type { Event, QueueEvent, Span } from './history.ts';

/** The period in which an entry was at the head of its queue, according to etcd. */
export interface Head extends Span {
  readonly rank: bigint;
  /** The value of the entry. */
  readonly value: string;
  /** When the entry was appended. */
  readonly queued: number;
  /** etcd's index of its removal; Infinity if it was not removed. */
  readonly removed: number;
  /** The previous entry at the head, if there was one. */
  readonly before: { readonly value: string; readonly mayHaveExpired: boolean } | undefined;
}

type Entry = Pick<Head, 'rank' | 'value' | 'queued'>;

/** Replays one queue and returns its heads in order. The period of an entry that is still the head ends at Infinity. */
export function headsIn(queue: readonly QueueEvent[]): Head[] {
  let entries: readonly Entry[] = [];
  const heads: Head[] = [];
  let since: Pick<Head, 'from' | 'before'> = { from: 0, before: undefined };
  for (const { rank, value, at, action, index } of queue.toSorted((a, b) => a.index - b.index)) {
    const [head] = entries;
    if (action === 'queued') {
      entries = [...entries, { rank, value, queued: at }].sort((a, b) => (a.rank < b.rank ? -1 : 1));
      if (!head) since = { from: at, before: undefined };
    } else {
      entries = entries.filter((entry) => entry.rank !== rank);
      if (head?.rank !== rank) continue;
      heads.push({ ...head, ...since, to: Math.max(at, since.from), removed: index });
      since = { from: at, before: { value, mayHaveExpired: action !== 'removed' } };
    }
  }
  const [last] = entries;
  return last
    ? [...heads, { ...last, ...since, to: Number.POSITIVE_INFINITY, removed: Number.POSITIVE_INFINITY }]
    : heads;
}

/** The owner of an entry of Go's Mutex whose contender has not reported it, because it never held the lock with it. */
export const SOME_ETCDCTL = 'some etcdctl';

/** The value that stands for an entry of Go's Mutex, which has none: the name of its key is the id of its lease. */
export const valueOfGo = (name: string): string => `go:${name}`;

/** Returns a function that finds the owner of an entry by its value: a uuid that the owner has reported, or its identity. */
export function ownersIn(history: readonly Event[]): (value: string) => string | undefined {
  const owners = new Map(
    history.flatMap((event) => ('uuid' in event && event.uuid !== undefined ? [[event.uuid, event.who]] : [])),
  );
  return (value) =>
    /^id:(.+):[^:]+$/.exec(value)?.[1] ??
    owners.get(value) ??
    (value.startsWith(valueOfGo('')) ? SOME_ETCDCTL : undefined);
}
