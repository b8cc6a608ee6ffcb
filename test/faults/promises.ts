import { elapsed, type Moment } from '../support/stalls/stalls.mjs';
import type { Stop } from './checker.ts';
import { type Event, overlap, type Span } from './history.ts';
import type { Hold } from './holds.ts';

/** A hold with this TTL in seconds survives any shorter outage, in milliseconds. */
export const KEPT = { ttl: 15, outage: 5000 } as const;

/** Milliseconds. Outages that are closer together count as one, because no attempt may fall between them. */
const PAUSE = 2000;

/**
 * Returns holds with a TTL of `KEPT.ttl` seconds that were lost although their contender was not stopped and no outage of
 * `KEPT.outage` or longer was in their last TTL.
 */
export function lostEarly(holds: readonly Hold[], outages: readonly Span[], stops: readonly Stop[]): Hold[] {
  const long = merged(outages).filter(({ from, to }) => to - from >= KEPT.outage);
  return holds.filter((hold) => {
    const { who, end, to } = hold;
    const last = { from: to - KEPT.ttl * 1000, to };
    const stopped = stops.some((stop) => stop.who === who && overlap(stop, last));
    return end === 'lost' && !stopped && !long.some((outage) => overlap(outage, last));
  });
}

function merged(outages: readonly Span[]): Span[] {
  const spans: Span[] = [];
  for (const outage of outages.toSorted((a, b) => a.from - b.from)) {
    const last = spans.at(-1);
    if (last && outage.from - last.to < PAUSE) spans[spans.length - 1] = { from: last.from, to: outage.to };
    else spans.push(outage);
  }
  return spans;
}

/** Milliseconds after its timeout within which a call must end, the removal of its entry included. */
const ENDING = 500;

/** A call with a timeout, and when it ended. */
export interface Answer extends Span {
  readonly who: string;
  readonly timeout: number;
}

const momentOf = ({ at, stalled = 0 }: Event): Moment => ({ at, stalled });

/**
 * Returns calls that ended later than their timeout allows, although their contender was neither stopped nor killed. The time
 * for which the contender was stalled does not count.
 */
export function answeredLate(history: readonly Event[], stops: readonly Stop[]): Answer[] {
  const asked = new Map<string, Event & { readonly kind: 'asks' }>();
  return history
    .toSorted((a, b) => a.at - b.at)
    .flatMap((event) => {
      const { who, kind, at } = event;
      const request = asked.get(who);
      asked.delete(who);
      if (kind === 'asks') asked.set(who, event);
      if (kind === 'died' || request?.timeout === undefined) return [];
      const { timeout } = request;
      const answer = { who, timeout, from: request.at, to: at };
      const stopped = stops.some((stop) => stop.who === who && overlap(stop, answer));
      return stopped || elapsed(momentOf(request), momentOf(event)) <= timeout * 1000 + ENDING ? [] : answer;
    });
}
