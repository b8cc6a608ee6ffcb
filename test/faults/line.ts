import type { Event, QueueEvent, Span } from './history.ts';

/** The period in which an entry was at the head of its queue, according to etcd. */
export interface Head extends Span {
  readonly token: bigint;
  /** The value of the entry. */
  readonly value: string;
  /** When the entry was appended. */
  readonly queued: number;
  /** The previous entry at the head, if there was one. */
  readonly before: { readonly value: string; readonly expired: boolean } | undefined;
}

type Entry = Pick<Head, 'token' | 'value' | 'queued'>;

/** Replays one queue and returns its heads in order. The period of an entry that is still the head ends at Infinity. */
export function headsIn(queue: readonly QueueEvent[]): Head[] {
  let entries: readonly Entry[] = [];
  const heads: Head[] = [];
  let since: Pick<Head, 'from' | 'before'> = { from: 0, before: undefined };
  for (const { token, value, at, action } of queue.toSorted((a, b) => a.index - b.index)) {
    const [head] = entries;
    if (action === 'queued') {
      entries = [...entries, { token, value, queued: at }].sort((a, b) => (a.token < b.token ? -1 : 1));
      if (!head) since = { from: at, before: undefined };
    } else {
      entries = entries.filter((entry) => entry.token !== token);
      if (head?.token !== token) continue;
      heads.push({ ...head, ...since, to: Math.max(at, since.from) });
      since = { from: at, before: { value, expired: action === 'expired' } };
    }
  }
  const [last] = entries;
  return last ? [...heads, { ...last, ...since, to: Number.POSITIVE_INFINITY }] : heads;
}

/** Returns a function that finds the owner of an entry by its value: a uuid that the owner has reported, or its identity. */
export function ownersIn(history: readonly Event[]): (value: string) => string | undefined {
  const owners = new Map(
    history.flatMap((event) => (event.kind === 'asks' && event.uuid !== undefined ? [[event.uuid, event.who]] : [])),
  );
  return (value) => /^id:(.+):[^:]+$/.exec(value)?.[1] ?? owners.get(value);
}
