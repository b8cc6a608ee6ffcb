import { setTimeout as sleep } from 'node:timers/promises';
import type { EtcdApi } from '../../../src/client.ts';
import { type BridgeProcess, startBridges } from '../../support/bridge-process.ts';
import { entriesBelow } from '../../support/gateway.ts';
import { entriesIn } from '../../support/locks.ts';
import { now } from '../../support/stalls/stalls.mjs';
import { until } from '../../support/until.ts';
import { judge } from '../checker.ts';
import { Contender, type ContenderKind } from '../contender.ts';
import { leftIn } from '../expired.ts';
import { type FaultCluster, startFaultCluster } from '../fault-cluster.ts';
import { startGuardedSets } from '../guarded-sets.ts';
import type { Hold } from '../holds.ts';
import { inflict, type World } from '../inflict.ts';
import { Recorder } from '../recorder.ts';
import { type Planned, schedule } from '../schedule.ts';
import { STORE } from '../stores/tested.ts';
import { servedBy } from '../use-cluster.ts';

const LOCK = 'moving';

/** In seconds. python-etcd does not renew, so its entries must not expire before their turn. */
const TTLS: Readonly<Record<ContenderKind, number>> = {
  lock: 6,
  manager: 6,
  several: 6,
  candidate: 6,
  python: 20,
  etcdctl: 6,
};
const LONGEST_TTL = 22;

/** Milliseconds that no step takes, however busy the machine: a wait for several entries that only expire. */
const LONG = 180_000;

/** Faults that last no longer, so that the processes mostly work. Milliseconds. */
const SHORT = 3000;
const PAUSE = 1000;

/** Faults of contenders are left out: who moves them kills some of them. */
const isShort = ({ kind, track, lasting }: Planned): boolean =>
  track !== 'contenders' && kind !== 'quorum paused' && lasting <= SHORT;

export interface Plan {
  /** The kinds of all processes, at the beginning and after each step. */
  readonly steps: readonly [EtcdApi, ...EtcdApi[]];
  readonly crew: readonly ContenderKind[];
  /** Chooses the faults, and the processes that are killed; undefined: there are none. */
  readonly seed?: number;
  /** What is done after the last step, while all processes work. */
  readonly after?: (move: Moved) => Promise<void>;
}

/** A move after its last step. All processes are at work. */
export interface Moved {
  readonly cluster: FaultCluster;
  /** Ends the bridges of kind both, which no client uses any more. */
  endBridgesToBoth(): Promise<void>;
  /** Resolves once each process has held the lock anew. */
  allHeldAnew(): Promise<void>;
}

export interface Outcome {
  /** Pairs of holds that overlap. */
  readonly overlaps: readonly (readonly [Hold, Hold])[];
  /** Exit codes and output of processes that failed without being killed. */
  readonly crashes: readonly string[];
  /** Keys and leases that are left after their TTL. */
  readonly left: readonly string[];
}

/**
 * Moves processes from one API to another, one at a time and step by step, while all of them work and a cluster of three and its
 * bridges fail from time to time.
 */
export async function rehearse({ steps: [first, ...steps], crew, seed, after }: Plan): Promise<Outcome> {
  const cluster = await startFaultCluster({ args: ['--enable-v2'] });
  const sets = await startGuardedSets();
  const members = cluster.members.map((member) => servedBy(member, cluster).map(({ url }) => url)).slice(0, 2);
  const bridges = { v3: await startBridges(members, 'v3'), both: await startBridges(members, 'both') };
  const fleet = new Fleet(cluster, bridges, sets.url);
  try {
    const workers = crew.map((kind, index) => new Worker(fleet, kind, index));
    for (const worker of workers) worker.start(first);
    const faults = seed === undefined ? undefined : inflictInTurn(seed, fleet);
    try {
      await Promise.all(workers.map((worker) => worker.atWork()));
      for (const [step, api] of steps.entries())
        for (const [index, worker] of workers.entries())
          await worker.move(api, seed !== undefined && (seed + step + index) % KILL_ONE_OF === 0);
    } finally {
      await faults?.end();
    }
    await after?.({
      cluster,
      endBridgesToBoth: async () => void (await Promise.all(bridges.both.map((bridge) => bridge.end()))),
      allHeldAnew: async () => void (await Promise.all(workers.map((worker) => worker.heldAnew()))),
    });
    await cluster.leader();
    await Promise.all(workers.map((worker) => worker.end()));
    return {
      overlaps: judge(fleet.recorder.history(LOCK)).overlaps,
      crashes: fleet.crashes,
      left: await left(cluster),
    };
  } finally {
    for (const contender of fleet.present) contender.kill();
    await Promise.all([...fleet.bridges].map((bridge) => bridge.end()));
    await sets.stop();
    await cluster.stop();
  }
}

/** Of so many processes that move, one is killed instead of asked to end. */
const KILL_ONE_OF = 5;

/** What all processes share. */
class Fleet implements World {
  readonly cluster: FaultCluster;
  readonly bridges: readonly BridgeProcess[];
  readonly recorder = new Recorder();
  readonly crashes: string[] = [];
  readonly present = new Set<Contender>();
  readonly #bridges: Readonly<Record<'v3' | 'both', readonly BridgeProcess[]>>;
  readonly #resource: string;
  #started = 0;

  constructor(
    cluster: FaultCluster,
    bridges: Readonly<Record<'v3' | 'both', readonly BridgeProcess[]>>,
    resource: string,
  ) {
    this.cluster = cluster;
    this.#bridges = bridges;
    this.bridges = [...bridges.v3, ...bridges.both];
    this.#resource = resource;
  }

  start(kind: ContenderKind, api: EtcdApi): Contender {
    this.#started += 1;
    const isBridged = kind === 'python' && api !== 'v2';
    const urls = isBridged ? this.#bridges[api].map(({ url }) => url) : this.cluster.urls;
    const from = this.#started % urls.length;
    const orders = {
      // On both, python-etcd has the token of v2.
      api: isBridged && api === 'both' ? 'v2' : api,
      who: `${kind}-${this.#started}-${api}`,
      lock: LOCK,
      ttl: TTLS[kind],
      endpoints: [...urls.slice(from), ...urls.slice(0, from)],
      resource: this.#resource,
    } as const;
    const contender = new Contender(kind, orders, this.recorder.listener(LOCK));
    this.present.add(contender);
    void contender.ended.then((crash) => {
      this.present.delete(contender);
      if (crash !== undefined) this.crashes.push(crash);
    });
    return contender;
  }

  victims = (): readonly Contender[] => [];
  holder = (): undefined => undefined;
  replace = (): void => {};
}

/** A process that is restarted with another API from time to time. */
class Worker {
  readonly #fleet: Fleet;
  readonly #kind: ContenderKind;
  readonly #name: string;
  #running: Contender | undefined;

  constructor(fleet: Fleet, kind: ContenderKind, index: number) {
    this.#fleet = fleet;
    this.#kind = kind;
    this.#name = `${kind} ${index}`;
  }

  start(api: EtcdApi): void {
    this.#running = this.#fleet.start(this.#kind, api);
  }

  /** Resolves once the process has held the lock. */
  atWork(): Promise<void> {
    return this.#untilReleased(1);
  }

  /** Resolves once the process has acquired and released the lock after this call. */
  heldAnew(): Promise<void> {
    // The next release may end a hold that began before.
    return this.#untilReleased(this.#releases + 2);
  }

  get #releases(): number {
    const who = this.#running?.who;
    return this.#fleet.recorder.history(LOCK).filter((event) => event.who === who && event.kind === 'released').length;
  }

  async #untilReleased(times: number): Promise<void> {
    await until(
      () => this.#releases,
      (releases) => releases >= times,
      { timeout: LONG, every: 50 },
    ).catch((error) => {
      throw new Error(`${this.#name}, ${this.#running?.who}, has not held the lock in time`, { cause: error });
    });
  }

  /** Ends the process, and starts it again with that API. Resolves once it has held the lock. */
  async move(api: EtcdApi, isKilled: boolean): Promise<void> {
    if (isKilled) await this.#kill();
    else await this.end();
    this.start(api);
    await this.atWork();
  }

  async end(): Promise<void> {
    const running = this.#running;
    if (!running) return;
    running.quit();
    const late = new AbortController();
    await Promise.race([
      running.ended,
      sleep(LONG, undefined, { signal: late.signal }).then(() => {
        throw new Error(`${running.who} has not ended in time`);
      }),
    ]);
    late.abort();
  }

  async #kill(): Promise<void> {
    const running = this.#running;
    if (!running) return;
    const over = this.#fleet.recorder.begin('contender killed', [running.who]);
    running.kill();
    await running.ended;
    this.#fleet.recorder.listener(LOCK)({ at: now(), who: running.who, kind: 'died' });
    over();
  }
}

/** Inflicts one fault after the other, until told to end. */
function inflictInTurn(seed: number, world: World): { end(): Promise<void> } {
  let isOver = false;
  const planned = schedule(seed, 3600, true).filter(isShort);
  const all = (async () => {
    for (const fault of planned) {
      if (isOver) return;
      await inflict(fault, world);
      await sleep(PAUSE);
    }
  })();
  all.catch(() => {});
  return {
    async end() {
      isOver = true;
      await all;
    },
  };
}

/** Resolves to what is left in the two stores although it must have expired. */
async function left(cluster: FaultCluster): Promise<string[]> {
  const keysIn = async (url: string): Promise<string[]> => {
    const hasV2 = (await fetch(`${url}/v2/keys/`)).ok;
    const v2 = hasV2 ? await entriesIn(`/_locks/${LOCK}`, url) : [];
    return [...v2, ...(await entriesBelow(`/_locks/${LOCK}/`, url))].map(({ key }) => key);
  };
  const keys = await leftIn(cluster, STORE, LONGEST_TTL, keysIn);
  return [...keys, ...(await leftIn(cluster, STORE, LONGEST_TTL, (url) => STORE.leases(url)))];
}
