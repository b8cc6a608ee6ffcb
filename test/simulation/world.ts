import { createHash } from 'node:crypto';
import { defaultMargin } from '../../src/recipe/lease.ts';
import { Checker } from './checker.ts';
import type * as bridge from './client/bridge.ts';
import type * as client from './client/entry.ts';
import { Cluster } from './cluster/cluster.ts';
import type * as etcd from './cluster/server.ts';
import type { Revoked } from './cluster/wrong-revocations.ts';
import { Disturbances } from './disturbances.ts';
import { Faults } from './faults.ts';
import { leftovers } from './leftovers.ts';
import { CALM, Network } from './network/network.ts';
import { type Plan, PORT } from './plan.ts';
import { Population } from './population.ts';
import { REMOVALS } from './population-plan.ts';
import { Requests } from './requests.ts';
import { storedAtEachStep } from './stored.ts';
import { Traffic } from './traffic.ts';
import { installGlobals } from './virtual/globals.ts';
import { EPOCH } from './virtual/process.ts';
import type { Program } from './virtual/program.ts';
import { Random } from './virtual/random.ts';
import { Scheduler } from './virtual/scheduler.ts';

export interface Programs {
  readonly client: Program<typeof client>;
  readonly bridge: Program<typeof bridge>;
  readonly etcd: Program<typeof etcd>;
}

/** What came of a world. */
export interface Outcome {
  readonly violations: readonly string[];
  /** Virtual milliseconds. */
  readonly time: number;
  readonly steps: number;
  readonly holds: number;
  readonly calls: number;
  readonly losses: number;
  readonly excused: Checker['excused'];
  readonly elections: number;
  readonly outcomes: ReadonlyMap<string, number>;
  readonly network: Readonly<Network['counts']>;
  readonly members: Readonly<Cluster['counts']>;
  /** A digest of the trace. */
  readonly digest: string;
  readonly trace: readonly string[];
}

/** Milliseconds after the storm in which every call must end. */
const CALM_FOR = 120_000;

/** Number of steps after which a world counts as one that never ends: usual ones have some 10,000. */
const MOST_STEPS = 500_000;

/** Milliseconds in which entries of killed processes expire. */
const SETTLE = 30_000;

/**
 * Runs a world.
 * @param isAgain whether it is to be examined: errors have stack traces, and no later world gets what it may have left in its programs
 */
export async function runWorld(plan: Plan, programs: Programs, isAgain = false): Promise<Outcome> {
  const restore = installGlobals({ stackTraces: isAgain });
  try {
    return await run(plan, programs, isAgain);
  } finally {
    restore();
  }
}

async function run(plan: Plan, programs: Programs, isAgain: boolean): Promise<Outcome> {
  const scheduler = new Scheduler();
  const lines: string[] = [];
  const trace = (line: string): void => void lines.push(`${scheduler.now.toFixed(3)} ${line}`);
  const seed = String(plan.seed);
  const network = new Network(scheduler, new Random(`${seed} network`), trace);
  const random = new Random(`${seed} cluster`);
  const members = plan.members.map((ahead) => ({ wall: EPOCH + ahead }));
  const disturbances = new Disturbances(plan);
  const checker = new Checker({
    now: () => scheduler.now,
    trace,
    stored: storedAtEachStep(() => clusters, scheduler),
    hasTwoClusters: plan.hasOtherCluster,
    isPlain: isPlain(plan),
    hasRemovals: hasRemovals(plan),
    hasNoEvictions: hasNoEvictions(plan),
    servedSince: ({ name }) => {
      if (plan.hasOtherCluster) return undefined;
      const i = plan.clients.findIndex((each) => each.name === name && each.kind === 'node' && !each.isBridged);
      return i < 0 ? undefined : disturbances.servedSince(i, scheduler.now);
    },
    hadLateWrites: () => plan.hasOtherCluster || network.counts.repeated > 0 || cluster.counts.writesAfterHangUp > 0,
  });
  for (const name of hurriedIn(plan)) checker.excuses.hurried.add(name);
  network.observer = new Traffic((what) => checker.violate(what), apisOf(plan));
  const onRevoked = ({ locks, revision, ttl }: Revoked): void => {
    for (const lock of locks) checker.revoked(lock, revision, ttl);
  };
  const { history, hasUsers } = plan;
  const program = programs.etcd;
  const options = {
    seed,
    scheduler,
    network,
    random,
    program,
    history,
    hasUsers,
    trace,
    onRevoked,
    onRemoved: (key: string) => checker.removed(key),
    onCreatedAgain: (key: string) => checker.violate(`${key} was created again by a later write`),
  };
  const cluster = new Cluster({ ...options, name: 'etcd', subnet: '10.0.0', members });
  network.members.push(...cluster.urls.map((url) => ({ host: new URL(url).hostname, port: PORT })));
  const others = plan.hasOtherCluster
    ? [new Cluster({ ...options, name: 'other', subnet: '10.0.2', members: [{ wall: EPOCH }] })]
    : [];
  const clusters = [cluster, ...others];
  const population = new Population({
    plan,
    programs,
    scheduler,
    network,
    checker,
    disturbances,
    urls: clusters.flatMap(({ urls }) => urls),
    trace,
  });
  const onReplaced = (): void => checker.replaced();
  const faults = new Faults({ cluster, network, population, scheduler, trace, onReplaced });
  faults.plan(plan.faults);
  const onUnhandled = (error: unknown): void =>
    checker.violate(`unhandled rejection: ${error instanceof Error ? error.stack : String(error)}`);
  process.on('unhandledRejection', onUnhandled).on('uncaughtException', onUnhandled);
  const requests = new Requests(checker, ({ name }) => plan.clients.find((each) => each.name === name)?.ttl);
  try {
    const isFailed = () => checker.violations.length > 0 || scheduler.steps > MOST_STEPS;
    await scheduler.run(plan.storm, isFailed);
    trace('the storm is over');
    population.calm();
    faults.end();
    network.weather = CALM;
    await scheduler.run(plan.storm + CALM_FOR, () => population.hasEnded || isFailed());
    if (scheduler.steps > MOST_STEPS) checker.violate(`${scheduler.steps} steps are too many`);
    if (!population.hasEnded && checker.violations.length === 0)
      checker.violate(
        `${population.clients.length - population.ended} processes have not ended: ${checker.open.join('; ')}`,
      );
    population.endBridges();
    await scheduler.run(scheduler.now + SETTLE, isFailed);
    if (checker.violations.length === 0)
      for (const left of [...leftovers(clusters, network, population), ...requests.left]) checker.violate(left);
    if (checker.violations.length === 0 && !isAgain) {
      for (const each of clusters) each.end();
      population.giveBack();
    }
  } finally {
    process.off('unhandledRejection', onUnhandled).off('uncaughtException', onUnhandled);
    requests.unsubscribe();
  }
  return {
    violations: checker.violations,
    time: scheduler.now,
    steps: scheduler.steps,
    holds: checker.holds,
    calls: checker.calls,
    losses: checker.losses,
    excused: checker.excused,
    elections: cluster.consensus.elections,
    outcomes: checker.outcomes,
    network: network.counts,
    members: cluster.counts,
    digest: createHash('sha256').update(lines.join('\n')).digest('hex'),
    trace: lines,
  };
}

/** Returns the processes whose margin is less than the difference between the clocks of two members. */
function hurriedIn({ api, members, clients }: Plan): readonly string[] {
  if (api !== 'v2') return [];
  const difference = Math.max(...members) - Math.min(...members);
  return clients.filter(({ ttl }) => difference >= defaultMargin(ttl) * 1000).map(({ name }) => name);
}

/** Whether nothing goes wrong, and there is nobody but clients of this package. */
const isPlain = ({ faults, clients, bridges }: Plan): boolean =>
  faults.length === 0 && bridges.length === 0 && clients.every(({ kind }) => kind === 'node');

/** Whether there are calls that remove entries of others. */
const hasRemovals = ({ clients }: Plan): boolean => clients.some(({ calls }) => REMOVALS.some((kind) => calls[kind]));

/** Whether no call removes entries of others, and no other cluster comes. On v2, members whose clocks differ remove entries early. */
const hasNoEvictions = (plan: Plan): boolean =>
  plan.api === 'v3' && !hasRemovals(plan) && plan.faults.every(({ kind }) => kind !== 'replace-cluster');

/** Returns how many APIs each client of this package uses at most. */
const apisOf = ({ api, clients }: Plan): ReadonlyMap<string, number> =>
  new Map(clients.flatMap(({ kind, name }) => (kind === 'node' ? [[name, api === 'both' ? 2 : 1]] : [])));
