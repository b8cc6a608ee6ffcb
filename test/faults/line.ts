import type { Event, QueueEvent, Span } from './history.ts';

/** The period in which an entry was among the first of its queue, which hold the lock, according to etcd. */
export interface Head extends Span {
  readonly rank: bigint;
  /** The value of the entry. */
  readonly value: string;
  /** When the entry was appended. */
  readonly queued: number;
  /** etcd's index of its removal; Infinity if it was not removed. */
  readonly removed: number;
  /** The values of the entries before it when it became a holder. */
  readonly ahead: readonly string[];
  /** The entry whose removal made this one a holder, if there was one. */
  readonly before: { readonly value: string; readonly mayHaveExpired: boolean } | undefined;
}

type Entry = Pick<Head, 'rank' | 'value' | 'queued'>;

/** Replays one queue and returns its heads, in the order of their ends. The period of an entry that still is one ends at Infinity. */
export function headsIn(queue: readonly QueueEvent[]): Head[] {
  let entries: readonly Entry[] = [];
  const heads: Head[] = [];
  const since = new Map<bigint, Pick<Head, 'from' | 'ahead' | 'before'>>();
  const isHead = (entry: Entry): boolean => holders(entries).includes(entry);
  for (const { rank, value, at, action, index } of queue.toSorted((a, b) => a.index - b.index)) {
    let before: Head['before'];
    if (action === 'queued') {
      entries = [...entries, { rank, value, queued: at }].sort((a, b) => (a.rank < b.rank ? -1 : 1));
    } else {
      const gone = entries.find((entry) => entry.rank === rank);
      const begun = since.get(rank);
      entries = entries.filter((entry) => entry !== gone);
      if (gone && begun) heads.push({ ...gone, ...begun, to: Math.max(at, begun.from), removed: index });
      before = { value, mayHaveExpired: action !== 'removed' };
    }
    for (const entry of entries.filter((one) => isHead(one) && !since.has(one.rank)))
      since.set(entry.rank, { from: at, ahead: valuesBefore(entry, entries), before });
  }
  const ended = { to: Number.POSITIVE_INFINITY, removed: Number.POSITIVE_INFINITY };
  return [
    ...heads,
    ...entries.flatMap((entry) => {
      const begun = since.get(entry.rank);
      return begun ? { ...entry, ...begun, ...ended } : [];
    }),
  ];
}

const valuesBefore = ({ rank }: Entry, entries: readonly Entry[]): readonly string[] =>
  entries.filter((other) => other.rank < rank).map(({ value }) => value);

/** Returns the entries that hold the lock: the first one, or as many with a limit as that allows. */
function holders(inOrder: readonly Entry[]): readonly Entry[] {
  const limitOf = ({ value }: Entry): number => Number(/^limit:(\d+):/.exec(value)?.[1] ?? 0);
  const [first] = inOrder;
  if (!first || limitOf(first) === 0) return inOrder.slice(0, 1);
  const other = inOrder.findIndex((entry) => limitOf(entry) === 0);
  return inOrder.slice(0, other < 0 ? limitOf(first) : Math.min(other, limitOf(first)));
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
    /^(?:limit:\d+:)?id:(.+):[^:]+$/.exec(value)?.[1] ??
    owners.get(value) ??
    (value.startsWith(valueOfGo('')) ? SOME_ETCDCTL : undefined);
}
