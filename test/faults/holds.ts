import type { Event, Span } from './history.ts';

/** One hold of the lock, from when its contender learned of it to when it learned of the end; Infinity if there is no end. */
export interface Hold extends Span {
  readonly who: string;
  readonly token: bigint;
  readonly shared: boolean;
  /** How many such holds there may be at the same time; undefined: a hold is alone, or beside shared ones. */
  readonly limit: number | undefined;
  /** How the hold ended, if it did; `expired`: by the deadline that was reported with it. */
  readonly end: 'released' | 'lost' | 'died' | 'expired' | undefined;
}

/** Returns the holds of a history, in the order they began. */
export function holdsIn(history: readonly Event[]): Hold[] {
  const ends = new Map<string, End>();
  const holds: Hold[] = [];
  // Backwards, so that each hold finds the next end; an end at the same time as a hold comes first.
  for (const event of history.toSorted((a, b) => b.at - a.at || Number(isBegin(a)) - Number(isBegin(b)))) {
    if (event.kind === 'died') ends.set(event.who, event);
    else if (event.kind === 'lost' || event.kind === 'released') ends.set(`${event.who} ${event.token}`, event);
    else if (isBegin(event)) holds.push(holdOf(event, ends));
  }
  return holds.reverse();
}

type Begin = Event & { readonly kind: 'held' };
type End = Event & { readonly kind: 'lost' | 'released' | 'died' };

const isBegin = (event: Event): event is Begin => event.kind === 'held';

function holdOf(
  { who, token, mode, limit, at, until = Number.POSITIVE_INFINITY }: Begin,
  ends: ReadonlyMap<string, End>,
): Hold {
  const hold = { who, token: BigInt(token), shared: mode === 'shared', limit, from: at };
  const end = ends.get(`${who} ${token}`) ?? ends.get(who);
  const reported = end?.at ?? Number.POSITIVE_INFINITY;
  if (until < reported) return { ...hold, to: Math.max(until, at), end: 'expired' };
  return { ...hold, to: reported, end: end?.kind };
}
