import type { StoreApi } from '../../src/client.ts';
import { type Allowance, AT_ONCE, forFault, forOutage, forOwnStop, forStopAhead } from './allowances.ts';
import type { Stop } from './checker.ts';
import { type Event, type Fault, overlap, type QueueEvent, type Span, type Stall } from './history.ts';
import { type Head, headsIn, ownersIn } from './line.ts';

/** The events of one lock, and all faults, outages, stops and stalls of the campaign. */
export interface Trial {
  readonly api: StoreApi;
  /** Seconds. */
  readonly ttl: number;
  readonly history: readonly Event[];
  readonly queue: readonly QueueEvent[];
  readonly faults: readonly Fault[];
  readonly outages: readonly Span[];
  readonly stops: readonly Stop[];
  readonly stalls: readonly Stall[];
  /** Whether the waits of a contender are judged: a foreign one keeps none of these limits. */
  readonly judged: (who: string) => boolean;
}

/** The time from when an entry was at the head of its queue until its contender held the lock, or the entry was removed. */
export interface Wait extends Span {
  readonly who: string;
  /** The rank of the entry. */
  readonly rank: bigint;
  /** When the wait had to end at the latest. */
  readonly due: number;
  /** The reasons why the wait was due later than after a second. */
  readonly why: readonly string[];
}

/** Milliseconds after the TTL of a holder that died. */
const AFTER_DEATH = 2000;

/** Milliseconds that a new leader on etcd v3 adds to the TTL of each lease: etcd's election timeout. */
const NEW_LEADER = 1000;

/**
 * Returns the waits of a trial. A wait begins when its entry reaches the head of the queue, and is due a second later.
 *
 * If the entry before it expired because its contender was killed or stopped, the wait begins one TTL after that, and is due
 * two seconds later. Faults make it due later (see `allowances.ts`); the latest due time counts. A fault counts only if it
 * began before the wait was due by the others: a fault that begins when the waiter is already late is no excuse.
 *
 * On etcd v3 the TTL of every lease starts again when a new leader is elected, so after each outage.
 *
 * The time for which the waiter or the machine was stalled during the wait does not count.
 *
 * A wait also ends when its contender is killed.
 */
export function waitsIn(trial: Trial): Wait[] {
  const { api, ttl, history, faults, outages, stops, stalls, judged } = trial;
  const ownerOf = ownersIn(history);
  const deaths = new Map(history.flatMap(({ kind, who, at }) => (kind === 'died' ? [[who, at] as const] : [])));
  const heldAt = (who: string, head: Head): number | undefined =>
    history.find((event) => event.kind === 'held' && event.who === who && isHoldOf(BigInt(event.token), head, api))?.at;
  const away = [...stops, ...[...deaths].map(([who, from]) => ({ who, from, to: Number.POSITIVE_INFINITY }))];
  const common = [...faults.flatMap((fault) => forFault(fault, ttl)), ...outages.map(forOutage)];

  return headsIn(trial.queue).flatMap((head) => {
    const who = ownerOf(head.value);
    if (who === undefined) throw new Error(`no contender asked for entry ${head.rank} with value ${head.value}`);
    if (!judged(who)) return [];
    const death = deaths.get(who) ?? Number.POSITIVE_INFINITY;
    if (death <= head.from) return [];
    const to = Math.min(death, Math.max(head.from, heldAt(who, head) ?? head.to));
    const before = head.before?.mayHaveExpired ? ownerOf(head.before.value) : undefined;
    const gone =
      before === undefined ? undefined : lastSeen(before, head.from, { api, deaths, stops, faults, outages });
    const from = gone === undefined ? head.from : Math.max(head.queued, Math.min(head.from, gone + ttl * 1000));
    const ownStops = stops.filter((stop) => stop.who === who);
    const own = ownStops.map((stop) => forOwnStop(stop, ttl));
    const aheadOf = head.ahead.map(ownerOf);
    const ahead = away.filter((stop) => api === 'v2' && stop.who !== who && aheadOf.includes(stop.who));
    const others = ahead.map((stop) => forStopAhead(stop, ttl));
    const first =
      gone === undefined
        ? { due: from + AT_ONCE, why: [] }
        : { due: from + AFTER_DEATH, why: [`${before} was killed or stopped`] };
    const { due, why } = dueOf({ from, to }, first, [...common, ...own, ...others]);
    // While a contender is stopped, it counts as stalled, too.
    const ownStalls = stalls.filter((stall) => stall.who === who && !ownStops.some((stop) => overlap(stop, stall)));
    const stalled = ownStalls
      .filter((stall) => overlap(stall, { from, to }))
      .reduce((sum, stall) => sum + Math.min(stall.stalled, Math.min(stall.to, to) - Math.max(stall.from, from)), 0);
    return { who, rank: head.rank, from, to, due: due + stalled, why };
  });
}

/**
 * Whether a hold with this fencing token is one of the entry. On etcd v2 the token is the rank. On etcd v3 it is the store's revision
 * when the entry was seen to be the first.
 */
export const isHoldOf = (token: bigint, { rank, removed }: Pick<Head, 'rank' | 'removed'>, api: StoreApi): boolean =>
  api === 'v2' ? token === rank : rank <= token && token < removed;

type Due = Pick<Wait, 'due' | 'why'>;

function dueOf({ from: since, to: end }: Span, first: Due, allowances: readonly Allowance[]): Due {
  let { due } = first;
  const why = [...first.why];
  for (;;) {
    const next = allowances
      .filter(({ from, to }) => from <= Math.min(due, end) && since <= to)
      .map((allowance) => ({ due: allowance.due(since), why: allowance.why }))
      .reduce((a, b) => (b.due > a.due ? b : a), { due, why: '' });
    if (next.due === due) return { due, why };
    due = next.due;
    why.push(next.why);
  }
}

/**
 * Returns the last time at which a contender that was killed or stopped can have renewed its expired entry; undefined if it was
 * neither. A paused member carries out a renewal that it has received once it is resumed.
 */
function lastSeen(
  who: string,
  expired: number,
  {
    api,
    deaths,
    stops,
    faults,
    outages,
  }: { readonly deaths: ReadonlyMap<string, number> } & Pick<Trial, 'api' | 'stops' | 'faults' | 'outages'>,
): number | undefined {
  const stop = stops.find((one) => one.who === who && one.from <= expired && expired <= one.to);
  const death = deaths.get(who);
  const at = death !== undefined && death <= expired ? death : stop?.from;
  if (at === undefined) return undefined;
  const held = faults.filter(({ kind, from, to }) => kind.endsWith('paused') && from <= at && at <= to);
  const elections = api === 'v3' ? outages.filter(({ from, to }) => from <= expired && at <= to) : [];
  return Math.max(at, ...held.map(({ to }) => to), ...elections.map(({ to }) => to + NEW_LEADER));
}
