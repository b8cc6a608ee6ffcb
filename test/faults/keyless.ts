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
  history.filter((event) => {
    if (!isOfGo(event)) return false;
    const end = history.find(({ kind, who, at }) => kind === 'released' && who === event.who && at >= event.at);
    return (removalOf(event, queue) ?? Number.POSITIVE_INFINITY) < (end?.at ?? Number.POSITIVE_INFINITY);
  });
