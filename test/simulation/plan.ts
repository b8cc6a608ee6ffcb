import { populationOf } from './population-plan.ts';
import { Random } from './virtual/random.ts';

/** Name that stands for all members of a cluster, and domain of their SRV records. */
export const CLUSTER_NAME = 'etcd.example';

/** Where each member listens. */
export const PORT = 2379;

export type Api = 'v2' | 'v3' | 'both';

/** Kinds of calls that a process makes. */
export type CallKind =
  | 'request'
  | 'acquire'
  | 'ifAvailable'
  | 'shared'
  | 'limited'
  | 'several'
  | 'lock'
  | 'lockNonBlocking'
  | 'elect'
  | 'holdAtLeast'
  | 'maxHold'
  | 'abort'
  | 'reentrant'
  | OtherCallKind;

/** Kinds of calls that are less common. */
export type OtherCallKind =
  | 'identity'
  | 'throws'
  | 'otherLimit'
  | 'query'
  | 'observe'
  | 'acquireSeveral'
  | 'adopt'
  | 'acquireAgain'
  | 'setUuid'
  | 'survey'
  | 'release'
  | 'forceRelease'
  | 'mistakes';

/** What a process is: one of this package, or the model of a client of others. */
export type ClientKind = 'node' | 'python' | 'go' | 'etcdctl';

/** A process that contends for locks. */
export interface ClientPlan {
  readonly kind: ClientKind;
  readonly api: Api;
  /** Whether it goes through the bridges of the world, as a client of v2. */
  readonly isBridged: boolean;
  readonly name: string;
  /** Milliseconds of its clock in one of the world. */
  readonly rate: number;
  /** Seconds. */
  readonly ttl: number;
  /** Seconds of the TTL with which it acquires a Lock again: its margin, too, must exceed the difference of the members' clocks. */
  readonly shortTtl: number;
  /** Number of loops that make calls at the same time. */
  readonly workers: number;
  readonly calls: Readonly<Partial<Record<CallKind, number>>>;
  /** Most milliseconds of a hold and of a pause. */
  readonly hold: number;
  readonly pause: number;
  /** Probability of a hold that lasts for as long as some renewals. */
  readonly longHolds: number;
  /** Milliseconds: its calls begin at multiples of this time, as those of others do. Undefined: at any time. */
  readonly beat?: number;
  /** The members that it knows, by number; undefined: all. */
  readonly members?: readonly number[];
  /** Whether it learns of the others from the member list. */
  readonly follows: boolean;
  /** How it knows the members. */
  readonly finds: 'addresses' | 'name' | 'SRV records';
  /** Whether it has jobs that run once per tick. */
  readonly jobs: boolean;
}

/** What a process has in hand when it is stopped. */
export type InHand = 'anything' | 'a message' | 'a removal' | 'an append' | 'a rewrite';

export type Fault =
  | {
      readonly kind: 'kill-member' | 'cut-member' | 'isolate-member';
      readonly member: number | 'leader';
    }
  /** `inHand`: begins when such a message is on its way, so that the process has it in hand. */
  | { readonly kind: 'stop-member'; readonly member: number | 'leader'; readonly inHand: InHand }
  | { readonly kind: 'stop-client'; readonly client: number; readonly inHand: InHand }
  /** A member is stopped with a removal in hand, and the client that has sent it is killed. It starts again soon. */
  | { readonly kind: 'interrupt-removal'; readonly member: number | 'leader' }
  | { readonly kind: 'forget-tokens'; readonly member: number }
  | { readonly kind: 'stall-leader' | 'replace-cluster' }
  /** `restarted`: a client that starts again at once, so that it has never seen the cluster. */
  | { readonly kind: 'kill-all'; readonly restarted: number }
  /** `every`: milliseconds between two floods of writes by others. */
  | { readonly kind: 'flood'; readonly every: number }
  | {
      readonly kind: 'compact';
      /** Number of revisions that are kept. */
      readonly keep: number;
      /** Milliseconds between two compactions. */
      readonly every: number;
    }
  | { readonly kind: 'stop-bridge' | 'kill-bridge'; readonly bridge: number }
  | { readonly kind: 'block-client' | 'kill-client'; readonly client: number }
  | { readonly kind: 'cut-client' | 'deafen-client'; readonly client: number; readonly member: number }
  /** Whoever sends such a message to a member hears nothing from any member from then on. */
  | { readonly kind: 'deafen-sender'; readonly member: number; readonly inHand: Exclude<InHand, 'anything'> }
  | {
      readonly kind: 'weather';
      readonly lost: number;
      readonly answerLost: number;
      readonly repeated: number;
      readonly delayed: number;
      /** Milliseconds. */
      readonly delay: number;
    };

export type FaultKind = Fault['kind'];

/** A fault that begins and ends, in milliseconds of the world. */
export type TimedFault = Fault & { readonly at: number; readonly until: number };

/** A bridge, and the rate of its clock. */
export interface BridgePlan {
  readonly api: 'v3' | 'both';
  readonly rate: number;
}

/** The start of a client with another API, in milliseconds of the world. */
export interface Move {
  readonly at: number;
  readonly client: number;
  readonly to: Api;
}

/** What makes a world: the same plan always unfolds in the same way. */
export interface Plan {
  readonly seed: number;
  readonly scenario: string;
  readonly api: Api;
  /** Milliseconds by which the clock of each member is ahead. */
  readonly members: readonly number[];
  readonly locks: readonly string[];
  readonly clients: readonly ClientPlan[];
  readonly bridges: readonly BridgePlan[];
  readonly moves: readonly Move[];
  readonly faults: readonly TimedFault[];
  /** Number of changes of v3 that the cluster keeps. */
  readonly history: number;
  /** Whether v3 asks for a user. */
  readonly hasUsers: boolean;
  /** Whether one of the addresses that clients know is that of another cluster, which works as well. */
  readonly hasOtherCluster: boolean;
  /** Milliseconds of the storm. */
  readonly storm: number;
  /** Number of holds before which no process ends: then, each client takes each lock once more. */
  readonly holds: number;
}

/** Which faults a scenario prefers. */
const SCENARIOS = {
  calm: {},
  mixed: {
    'stop-member': 2,
    'kill-member': 2,
    'cut-member': 1,
    'isolate-member': 1,
    'stop-client': 2,
    'block-client': 2,
    'kill-client': 2,
    'stop-bridge': 1,
    'kill-bridge': 1,
    'cut-client': 1,
    'deafen-client': 1,
    'deafen-sender': 1,
    weather: 4,
  },
  'bad-network': { weather: 6, 'cut-client': 1, 'deafen-client': 1, 'deafen-sender': 2 },
  'stopped-members': { 'stop-member': 1, weather: 0.3 },
  'killed-members': { 'kill-member': 1, weather: 0.3 },
  // With connections that break, so that a client asks a member that lags behind.
  partitions: { 'cut-member': 1, 'isolate-member': 1, 'cut-client': 1, 'deafen-client': 1, weather: 2 },
  'stopped-clients': { 'stop-client': 2, 'block-client': 1, weather: 0.3 },
  'killed-clients': { 'kill-client': 1, 'interrupt-removal': 0.7, weather: 0.3 },
  outages: { 'stop-member': 1, 'kill-member': 1, 'kill-all': 0.5 },
  'busy-cluster': { flood: 3, 'stop-member': 1, 'isolate-member': 0.5, 'cut-client': 0.5, weather: 1 },
  clocks: { 'stop-member': 1, 'kill-member': 1, 'isolate-member': 0.5, 'stop-client': 0.5, weather: 0.5 },
  // Nothing that delays an answer of the cluster before: its tokens would count.
  'replaced-cluster': { 'replace-cluster': 1, 'kill-member': 1, 'stop-member': 1, 'kill-client': 0.5 },
  users: { 'forget-tokens': 3, 'kill-member': 1, 'stop-member': 0.5, weather: 1 },
  compactions: { compact: 3, 'stop-member': 0.5, 'cut-member': 0.5, 'cut-client': 0.5, weather: 1 },
  'wrong-revocations': { 'stall-leader': 3, 'stop-member': 0.5, 'cut-client': 0.3, weather: 0.3 },
  // Whoever gets no answer asks a member of the other one.
  'two-clusters': { 'stop-member': 2, 'deafen-client': 1, weather: 2 },
} as const satisfies Readonly<Record<string, Readonly<Partial<Record<FaultKind, number>>>>>;

export type Scenario = keyof typeof SCENARIOS;
export const SCENARIO_NAMES = Object.keys(SCENARIOS) as [Scenario, ...Scenario[]];

/** The APIs of a scenario that is about one of them. */
const APIS: Readonly<Partial<Record<Scenario, Readonly<Partial<Record<Api, number>>>>>> = {
  'busy-cluster': { v2: 4, both: 1 },
  clocks: { v2: 1 },
  users: { v3: 4, both: 1 },
  compactions: { v3: 4, both: 1 },
  'wrong-revocations': { v3: 4, both: 1 },
  'two-clusters': { v3: 1 },
};

/** The scenarios that are about this API, or about any. */
const scenariosOf = (api: Api): [Scenario, ...Scenario[]] =>
  SCENARIO_NAMES.filter((name) => (APIS[name] ?? { [api]: 1 })[api]) as [Scenario, ...Scenario[]];

const CALLS: Readonly<Record<CallKind, number>> = {
  request: 6,
  acquire: 3,
  ifAvailable: 2,
  shared: 3,
  limited: 2,
  several: 1.5,
  lock: 3,
  lockNonBlocking: 1,
  elect: 0.7,
  holdAtLeast: 0.7,
  maxHold: 0.7,
  abort: 1.5,
  reentrant: 0.5,
  identity: 1,
  throws: 0.5,
  otherLimit: 0.3,
  query: 0.5,
  observe: 0.5,
  acquireSeveral: 0.5,
  adopt: 0.5,
  acquireAgain: 0.7,
  setUuid: 0.4,
  survey: 0.3,
  release: 0.6,
  forceRelease: 0.2,
  mistakes: 0.2,
};

/** Those that most calls of a world may be of: they hold a lock, and nothing that they do excuses others. */
const FAVORITES = [
  'ifAvailable',
  'shared',
  'limited',
  'limited',
  'several',
  'lock',
  'lock',
  'abort',
  'elect',
  'identity',
  'adopt',
  'acquireAgain',
] as const satisfies readonly CallKind[];

/** Weight of a favorite: about that of all others together. */
const FAVORITE = 8;

/** Scenarios without clients of others, bridges and moves: these have no users, or may hold what the scenario excuses only for this package. */
const PLAIN: readonly Scenario[] = ['users', 'replaced-cluster', 'clocks', 'wrong-revocations', 'two-clusters'];

/** Number of holds that the storm of a world has about time for. */
const HOLDS = 48;

/** Least number of holds of a world. */
const LEAST_HOLDS = 50;

/** Number of workers that a process has on average. */
const WORKERS = 1.67;

/** Returns the plan of a world. The first scenario is chosen by the seed, unless one is given. */
export function planOf(seed: number, { scenario, api }: { scenario?: Scenario; api?: Api } = {}): Plan {
  const random = new Random(`plan ${seed}`);
  const chosen = scenario ?? random.pick(api ? scenariosOf(api) : SCENARIO_NAMES);
  const chosenApi = api ?? random.weighted<Api>(APIS[chosen] ?? { v2: 5, v3: 3, both: 1 });
  const count =
    chosen === 'calm' || random.chance(0.2) ? random.pick([1, 3]) : random.weighted({ 3: 4, 5: 1 }) === '3' ? 3 : 5;
  const ahead = chosen === 'clocks' ? random.pick([1000, 8000]) : 100;
  const members = Array.from({ length: count }, () => random.integer(-ahead, ahead));
  const locks = Array.from({ length: random.integer(1, 3) }, (_, i) => `lock${i + 1}`);
  const storm = random.pick([31_000, 35_000, 45_000]);
  const length = random.pick([2, 2, 3, 3, 4]);
  const world = {
    members: count,
    cycle: (storm * length * WORKERS) / HOLDS,
    longest: (2 * storm * locks.length) / LEAST_HOLDS,
    mayShorten: chosen !== 'clocks',
    // A renewal must often meet a member that is stopped.
    longHolds: random.pick(chosen === 'stopped-members' ? [0.3, 0.3, 0.5] : [0, 0, 0.3]),
    favorite: random.chance(0.4) ? random.pick(FAVORITES) : undefined,
    beat: random.pick([undefined, undefined, undefined, 200, 1000]),
  };
  const followers = new Random(`followers ${seed}`);
  const own = Array.from({ length }, (_, i) => ({
    ...clientOf(random, i + 1, world),
    follows: followers.chance(0.3),
  }));
  const others = new Random(`others ${seed}`);
  const { clients, bridges, moves } = populationOf(own, chosenApi, { storm, isPlain: PLAIN.includes(chosen) }, others);
  const isNested = bridges.length === 0 && clients.every(({ kind }) => kind === 'node') && others.chance(0.4);
  const faults =
    chosen === 'calm'
      ? []
      : faultsOf(random, chosen, { storm, members: count, clients: clients.length, bridges: bridges.length });
  const hasOtherCluster = chosen === 'two-clusters';
  const history = chosen === 'compactions' ? random.pick([1, 5, 10_000]) : 10_000;
  return {
    seed,
    scenario: chosen,
    api: chosenApi,
    members,
    locks: isNested ? nested(locks) : locks,
    clients: hasOtherCluster ? clients.map(forTwoClusters) : clients,
    bridges,
    moves,
    faults,
    history,
    hasUsers: chosen === 'users',
    hasOtherCluster,
    storm,
    holds: LEAST_HOLDS - clients.filter(({ kind }) => kind === 'node').length * locks.length,
  };
}

/** Puts all locks but the first one below it. Go's Mutex would wait for all of them. */
const nested = ([first = '', ...others]: readonly string[]): string[] => [
  first,
  ...others.map((name) => `${first}/${name}`),
];

/** In each cluster the tick of a job runs, and somebody who removes the entries of others does so in either. */
const forTwoClusters = (client: ClientPlan): ClientPlan => ({
  ...client,
  calls: { ...client.calls, release: 0, forceRelease: 0 },
  finds: 'addresses',
  jobs: false,
});

/** What the clients of a world have in common. */
interface World {
  readonly members: number;
  /** Milliseconds of a hold and the pause before it, on average. */
  readonly cycle: number;
  /** Most milliseconds of a hold: with longer ones, the storm would have no time for enough of them. */
  readonly longest: number;
  readonly mayShorten: boolean;
  /** Those of the first client: if each had some, too few locks would be held. */
  readonly longHolds: number;
  readonly favorite: CallKind | undefined;
  readonly beat: number | undefined;
}

function clientOf(
  random: Random,
  number: number,
  { members, cycle, longest, mayShorten, longHolds, favorite, beat }: World,
): Omit<ClientPlan, 'follows'> {
  const calls = Object.fromEntries(
    Object.entries(CALLS).map(([kind, weight]) => [kind, random.chance(0.4) ? 0 : weight * random.next()]),
  );
  const isLong = number === 1 && longHolds > 0;
  // A hold may last for longer than this, so that renewals matter.
  const ttl = isLong ? 10 : random.pick([2, 3, 5, 5, 10, 10, 20]);
  const held = random.pick([0.01, 0.2, 0.4, 0.7]);
  return {
    kind: 'node',
    api: 'v2',
    isBridged: false,
    name: `node${number}`,
    rate: beat === undefined ? random.between(0.998, 1.002) : 1,
    ttl,
    shortTtl: mayShorten ? 1 : ttl,
    workers: random.pick([1, 1, 1, 2, 2, 3]),
    calls: { ...calls, request: 1 + random.next(), ...(favorite === undefined ? {} : { [favorite]: FAVORITE }) },
    hold: Math.min(2 * cycle * held, longest),
    pause: 2 * cycle * (1 - held),
    longHolds: isLong ? longHolds : 0,
    ...(beat === undefined ? {} : { beat }),
    finds: random.weighted({ addresses: 6, name: 1, 'SRV records': 1 }),
    jobs: random.chance(0.3),
    ...(random.chance(0.2) ? { members: [random.integer(0, members - 1)] } : {}),
  };
}

type Lengths = readonly [readonly [number, number], ...(readonly [number, number])[]];

/** Milliseconds of a fault. */
const ANY_LENGTH: Lengths = [
  [50, 1000],
  [1000, 6000],
  [6000, 20_000],
];

const LENGTHS: Readonly<Partial<Record<FaultKind, Lengths>>> = {
  flood: [[500, 2000]],
  // Within these, the client must start again and take its entry over.
  'interrupt-removal': [[3000, 8000]],
  // As long as an election, and a TTL.
  'stall-leader': [[4000, 14_000]],
  // Also until such a message is sent.
  'deafen-sender': [[4000, 14_000]],
};

interface Size {
  readonly storm: number;
  readonly members: number;
  readonly clients: number;
  readonly bridges: number;
}

function faultsOf(random: Random, scenario: Exclude<Scenario, 'calm'>, size: Size): TimedFault[] {
  // With few of them, it shows what a client does while all is well again.
  const count = random.integer(3, random.pick([4, 10]));
  // One after the other: each time, most members are there.
  const isInTurn = count < 5 && random.chance(0.7);
  const turn = size.storm / count;
  return Array.from({ length: count }, (_, i) => {
    const [from, to] = isInTurn ? [i * turn + 500, (i + 1) * turn - 1000] : [500, size.storm];
    const at = Math.round(isInTurn ? random.between(from, from + 1000) : random.between(from, to - 2000));
    const fault = faultOf(random, random.weighted<FaultKind>(SCENARIOS[scenario]), size);
    const lasts = Math.round(random.between(...random.pick(LENGTHS[fault.kind] ?? ANY_LENGTH)));
    return { ...fault, at, until: Math.round(Math.min(at + lasts, to)) };
  }).sort((one, other) => one.at - other.at);
}

function faultOf(random: Random, kind: FaultKind, { members, clients, bridges }: Size): Fault {
  const member = random.integer(0, members - 1);
  const client = random.integer(0, clients - 1);
  switch (kind) {
    case 'stop-member':
      return {
        kind,
        member: random.chance(0.5) ? 'leader' : member,
        inHand: random.pick(['anything', 'a message', 'a removal', 'an append', 'a rewrite']),
      };
    case 'kill-member':
    case 'cut-member':
    case 'isolate-member':
    case 'interrupt-removal':
      return { kind, member: random.chance(0.5) ? 'leader' : member };
    case 'deafen-sender':
      return { kind, member, inHand: random.pick(['a removal', 'an append', 'a rewrite', 'a rewrite']) };
    case 'forget-tokens':
      return { kind, member };
    case 'kill-all':
      return { kind, restarted: client };
    case 'stall-leader':
    case 'replace-cluster':
      return { kind };
    case 'flood':
      return { kind, every: random.pick([100, 300, 1000]) };
    case 'compact':
      return { kind, keep: random.pick([0, 0, 1, 10]), every: random.pick([30, 100, 1000]) };
    case 'stop-client':
      return { kind, client, inHand: random.pick(['anything', 'a message']) };
    case 'block-client':
    case 'kill-client':
      return { kind, client };
    case 'stop-bridge':
    case 'kill-bridge':
      return { kind, bridge: random.integer(0, Math.max(bridges - 1, 0)) };
    case 'cut-client':
    case 'deafen-client':
      return { kind, client, member };
    case 'weather': {
      const rate = () => (random.chance(0.5) ? random.between(0.005, 0.15) : 0);
      const rates = { lost: rate(), answerLost: rate(), repeated: rate(), delayed: rate() };
      const storm = random.chance(0.3) ? { [random.pick(['answerLost', 'delayed'])]: random.between(0.3, 0.9) } : {};
      return { kind, ...rates, ...storm, delay: random.pick([50, 500, 1000, 3000]) };
    }
  }
}
