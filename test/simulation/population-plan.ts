import type { Api, BridgePlan, CallKind, ClientKind, ClientPlan, Move } from './plan.ts';
import type { Random } from './virtual/random.ts';

/** Which clients share a lock: those of v2 and those of v3 never do, as they do not wait for each other. */
type Mixture = 'v2' | 'v3' | 'both' | 'v2 and both' | 'both and v3' | 'move';

const APIS: Readonly<Record<Mixture, readonly [Api, ...Api[]]>> = {
  v2: ['v2'],
  v3: ['v3'],
  both: ['both'],
  'v2 and both': ['v2', 'both'],
  'both and v3': ['both', 'v3'],
  move: ['v2'],
};

/** The clients of others that may be in a world beside those of this package. */
const OTHERS: Readonly<Record<Mixture, readonly ClientKind[]>> = {
  v2: ['python'],
  v3: ['go', 'etcdctl'],
  both: [],
  'v2 and both': ['python'],
  'both and v3': ['go', 'etcdctl'],
  move: [],
};

/** Calls that a bridge does not serve. */
const NOT_BRIDGED: readonly CallKind[] = ['survey', 'query', 'observe', 'release', 'forceRelease'];

/** Calls that may remove the entry of another client. */
export const REMOVALS = ['release', 'forceRelease'] as const satisfies readonly CallKind[];

/** Decides of which kind and API the clients of a world are, which bridges they use, and when they move. */
export function populationOf(
  clients: readonly ClientPlan[],
  api: Api,
  { storm, isPlain }: { storm: number; isPlain: boolean },
  random: Random,
): { clients: ClientPlan[]; bridges: BridgePlan[]; moves: Move[] } {
  const mixture: Mixture =
    api === 'both' && !isPlain ? random.weighted({ both: 1, 'v2 and both': 1, 'both and v3': 1, move: 2 }) : api;
  const hasOthers = !isPlain && random.chance(0.4);
  const hasBridges = !isPlain && (mixture === 'v3' || mixture === 'both') && random.chance(0.4);
  const bridgeApi = mixture === 'v3' ? 'v3' : 'both';
  const bridges = Array.from({ length: hasBridges ? random.integer(1, 2) : 0 }, () => ({
    api: bridgeApi,
    rate: random.between(0.998, 1.002),
  })) satisfies BridgePlan[];
  const numbers = new Map<ClientKind, number>();
  const planned = clients.map((client, i): ClientPlan => {
    const isBridged = hasBridges && random.chance(0.5);
    const others = isBridged ? (['python'] as const) : OTHERS[mixture];
    // One client at least is of this package: python-etcd may need 10 s for each hold.
    const kind = hasOthers && i > 0 && random.chance(0.5) ? (random.pick(others) ?? 'node') : 'node';
    const chosen = isBridged || kind === 'python' ? 'v2' : kind === 'node' ? random.pick(APIS[mixture]) : 'v3';
    const calls = isBridged ? without(client.calls, NOT_BRIDGED) : client.calls;
    const bridged = { isBridged, ...(isBridged ? { finds: 'addresses' as const, follows: false, jobs: false } : {}) };
    if (kind === 'node') return { ...client, ...bridged, api: chosen, calls };
    const number = (numbers.get(kind) ?? 0) + 1;
    numbers.set(kind, number);
    const ttl = kind === 'python' ? random.pick([5, 10, 20]) : client.ttl;
    return { ...client, ...bridged, kind, api: chosen, name: `${kind}${number}`, ttl, calls: {} };
  });
  // `etcdctl lock` of 3.4 does not look for its own entry again: it would hold with any token.
  const isCareful = planned.some(({ kind }) => kind === 'etcdctl') || random.chance(0.5);
  const careful = planned.map((client) => ({ ...client, calls: without(client.calls, isCareful ? REMOVALS : []) }));
  return { clients: careful, bridges, moves: mixture === 'move' ? movesOf(planned.length, storm, random) : [] };
}

/** First all clients move from v2 to both, then all from both to v3. */
function movesOf(clients: number, storm: number, random: Random): Move[] {
  const step = (to: Api, from: number, until: number): Move[] =>
    Array.from({ length: clients }, (_, client) => ({ at: random.between(from, until) * storm, client, to }));
  return [...step('both', 0.1, 0.35), ...step('both', 0.4, 0.45), ...step('v3', 0.55, 0.8), ...step('v3', 0.85, 0.9)];
}

const without = (calls: ClientPlan['calls'], kinds: readonly CallKind[]): ClientPlan['calls'] =>
  Object.fromEntries(Object.entries(calls).filter(([kind]) => !kinds.some((other) => other === kind)));
