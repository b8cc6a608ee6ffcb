import type { Fault, FaultKind, Plan, TimedFault } from './plan.ts';

/** Those that take one member away, from all or from one client: the others can still serve. */
const OF_ONE_MEMBER: readonly FaultKind[] = [
  'stop-member',
  'kill-member',
  'cut-member',
  'isolate-member',
  'cut-client',
  'deafen-client',
];

const OF_BRIDGES: readonly FaultKind[] = ['stop-bridge', 'kill-bridge'];

/** Knows since when the faults of a world leave a client alone, in milliseconds. */
export class Disturbances {
  readonly #plan: Plan;

  constructor(plan: Plan) {
    this.#plan = plan;
  }

  /** Returns when the last fault that concerns a client has ended; `now` if one lasts. */
  quietSince(client: number, now: number): number {
    return lastEnd(this.#of(client), now);
  }

  /** Returns since when most members can serve a client: at most one was away at any time. `now` if that is not so now. */
  servedSince(client: number, now: number): number {
    const faults = this.#of(client);
    const isMild = ({ kind }: Fault): boolean => this.#hasSpares(client) && OF_ONE_MEMBER.includes(kind);
    const mild = faults.filter(isMild);
    const together = mild.flatMap((one, i) => mild.slice(i + 1).flatMap((other) => overlapOf(one, other) ?? []));
    return lastEnd([...faults.filter((fault) => !isMild(fault)), ...together], now);
  }

  /** Returns when the last fault that concerns a client has begun. */
  begunAt(client: number, now: number): number {
    return Math.max(0, ...this.#of(client).flatMap(({ at }) => (at <= now ? [at] : [])));
  }

  /** Returns when the cluster was last replaced. */
  replacedAt(now: number): number {
    const replacements = this.#plan.faults.filter(({ kind, at }) => kind === 'replace-cluster' && at <= now);
    return Math.max(Number.NEGATIVE_INFINITY, ...replacements.map(({ at }) => at));
  }

  /** Whether the client knows other members than one, and most of them still work without one. */
  #hasSpares(client: number): boolean {
    return this.#plan.members.length > 2 && this.#plan.clients[client]?.members === undefined;
  }

  #of(client: number): readonly TimedFault[] {
    return this.#plan.faults.filter(
      (fault) => !OF_BRIDGES.includes(fault.kind) && !('client' in fault && fault.client !== client),
    );
  }
}

type Span = Pick<TimedFault, 'at' | 'until'>;

const lastEnd = (spans: readonly Span[], now: number): number =>
  Math.max(0, ...spans.filter(({ at }) => at <= now).map(({ until }) => Math.min(until, now)));

/** Returns the time in which two members are away. */
function overlapOf(one: TimedFault, other: TimedFault): Span | undefined {
  const isSame = 'member' in one && 'member' in other && one.member !== 'leader' && one.member === other.member;
  if (isSame) return undefined;
  const [at, until] = [Math.max(one.at, other.at), Math.min(one.until, other.until)];
  return at < until ? { at, until } : undefined;
}
