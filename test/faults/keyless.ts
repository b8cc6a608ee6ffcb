import type { Event, QueueEvent } from './history.ts';

type Held = Event & { readonly kind: 'held' };

/** Whether the hold is one of Go's Mutex, which reports its entry only then. */
const isOfGo = (event: Event): event is Held => event.kind === 'held' && event.uuid !== undefined;

/** Returns when the entry of that hold was removed. */
const removalOf = ({ uuid }: Held, queue: readonly QueueEvent[]): number | undefined =>
  queue.find(({ action, value }) => action !== 'queued' && value === uuid)?.at;

/**
 * Returns the history with a deadline for each hold of Go's Mutex: the removal of its entry. Go's Mutex of etcd 3.4 does not notice
 * that, and takes the lock even if its entry has expired before: what it does without its key is no hold.
 */
export const holdingByKey = (history: readonly Event[], queue: readonly QueueEvent[]): Event[] =>
  history.map((event) => {
    const until = isOfGo(event) ? removalOf(event, queue) : undefined;
    return until === undefined ? event : { ...event, until };
  });

/** Returns the holds of Go's Mutex whose entry was removed before their release. */
export const keylessIn = (history: readonly Event[], queue: readonly QueueEvent[]): Event[] =>
  history.filter(
    (event) => isOfGo(event) && (removalOf(event, queue) ?? Number.POSITIVE_INFINITY) < endOf(event, history),
  );

/** Returns when the contender of that hold reports its end. */
const endOf = (held: Event, history: readonly Event[]): number =>
  history.find(({ kind, who, at }) => (kind === 'released' || kind === 'lost') && who === held.who && at >= held.at)
    ?.at ?? Number.POSITIVE_INFINITY;

/**
 * Whether an update was lost because of a hold without its key: it is of such a hold, or of one at the same time. No fence can keep
 * these two apart: Go's token is the revision at which it took the lock, which may be that of the other hold, or a later one.
 * @param addition the contender and the number of its hold
 */
export function isLostByKeyless(addition: string, history: readonly Event[], keyless: readonly Event[]): boolean {
  const [, by, count] = /^(.+) (\d+)$/.exec(addition) ?? [];
  const hold = history.filter(({ kind, who }) => kind === 'held' && who === by)[Number(count) - 1];
  if (!hold) return false;
  return keyless.some((one) => one.at <= endOf(hold, history) && hold.at <= endOf(one, history));
}
