import type { Event, QueueEvent, Span } from './history.ts';

/** An entry's time at the head of its queue, as etcd carried it out. */
export interface Head extends Span {
  readonly token: bigint;
  /** What the entry carried. */
  readonly value: string;
  /** When it was queued. */
  readonly queued: number;
  /** The entry at the head until then, if there was one. */
  readonly before: { readonly value: string; readonly expired: boolean } | undefined;
}

type Entry = Pick<Head, 'token' | 'value' | 'queued'>;

/** Replays one queue: who was first in line, one after the other. The last one's time is Infinity where it still is. */
export function headsIn(queue: readonly QueueEvent[]): Head[] {
  let line: readonly Entry[] = [];
  const heads: Head[] = [];
  let since: Pick<Head, 'from' | 'before'> = { from: 0, before: undefined };
  for (const { token, value, at, action } of queue.toSorted((a, b) => a.index - b.index)) {
    const [head] = line;
    if (action === 'queued') {
      line = [...line, { token, value, queued: at }].sort((a, b) => (a.token < b.token ? -1 : 1));
      if (!head) since = { from: at, before: undefined };
    } else {
      line = line.filter((entry) => entry.token !== token);
      if (head?.token !== token) continue;
      heads.push({ ...head, ...since, to: Math.max(at, since.from) });
      since = { from: at, before: { value, expired: action === 'expired' } };
    }
  }
  const [last] = line;
  return last ? [...heads, { ...last, ...since, to: Number.POSITIVE_INFINITY }] : heads;
}

/** Who made the entry that carries this. Contenders tell the uuid before they queue up, or have it as their identity. */
export function ownersIn(history: readonly Event[]): (value: string) => string | undefined {
  const owners = new Map(
    history.flatMap((event) => (event.kind === 'asks' && event.uuid !== undefined ? [[event.uuid, event.who]] : [])),
  );
  return (value) => /^id:(.+):[^:]+$/.exec(value)?.[1] ?? owners.get(value);
}
