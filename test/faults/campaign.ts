import { setTimeout as sleep } from 'node:timers/promises';
import { queueOn } from '../support/locks.ts';
import { until } from '../support/until.ts';
import { Contender, type ContenderKind, type Orders } from './contender.ts';
import { type FaultCluster, startFaultCluster } from './fault-cluster.ts';
import { type GuardedSets, startGuardedSets } from './guarded-sets.ts';
import { now } from './history.ts';
import { inflict } from './inflict.ts';
import { ownersIn } from './line.ts';
import { startPulse } from './pulse.ts';
import { type QueueLog, watchQueues } from './queue-log.ts';
import { Recorder } from './recorder.ts';
import { type Planned, schedule, type TrackName } from './schedule.ts';
import type { Trial } from './waits.ts';

/** A lock of its own for each TTL, so that it is clear how long a wait may take. */
interface Arena {
  readonly lock: string;
  /** Seconds. */
  readonly ttl: number;
  readonly contenders: readonly ContenderKind[];
  /** What all contenders are told. */
  readonly orders: Pick<Orders, 'longHold'>;
  /** What every other contender is told beside. */
  readonly others: Pick<Orders, 'timeout' | 'trusting'>;
  /** Whether its contenders are stopped and killed. */
  readonly rough: boolean;
}

const ARENAS: readonly Arena[] = [
  // Long holds that no outage shorter than 5 s may end.
  {
    lock: 'steady',
    ttl: 15,
    contenders: ['lock', 'lock', 'manager', 'manager'],
    orders: { longHold: 8 },
    others: {},
    rough: false,
  },
  // A short TTL, so that not all the time is spent on waiting for the dead.
  {
    lock: 'rough',
    ttl: 5,
    contenders: ['lock', 'lock', 'manager', 'manager', 'python', 'python'],
    orders: {},
    others: { timeout: 20, trusting: true },
    rough: true,
  },
];

const TRACKS: readonly TrackName[] = ['members', 'network', 'contenders'];

/** What became of one lock. */
export interface LockOutcome extends Trial {
  readonly lock: string;
  readonly sets: Readonly<Record<'fenced' | 'plain', ReturnType<GuardedSets['result']>>>;
  /** Keys that nobody wants any more. */
  readonly leftovers: readonly string[];
}

export interface Outcome {
  readonly seed: number;
  readonly seconds: number;
  readonly locks: readonly LockOutcome[];
  readonly kinds: ReadonlyMap<string, ContenderKind>;
  /** Contenders that did not end when told to. */
  readonly stuck: readonly string[];
  /** Why contenders ended that nobody had killed. */
  readonly crashes: readonly string[];
}

/** Contenders take turns for that many seconds on a cluster to which all that the seed says is done. */
export async function runCampaign(seed: number, seconds: number): Promise<Outcome> {
  const cluster = await startFaultCluster();
  const sets = await startGuardedSets();
  const queues = await watchQueues(cluster.members.map(({ etcd }) => etcd.url));
  const pulse = startPulse(cluster.urls);
  const crew = new Crew(cluster, sets.url);
  try {
    crew.start();
    const { recorder } = crew;
    await until(
      () => ARENAS.map(({ lock }) => recorder.history(lock).filter(({ kind }) => kind === 'held').length),
      (holds) => holds.every((count) => count > 0),
    );
    const begin = now();
    const plan = schedule(seed, seconds);
    const tracks = await Promise.allSettled(TRACKS.map((track) => follow(plan, track, begin, crew)));
    // Not before all have ended: none is to touch a cluster that is gone.
    for (const track of tracks) if (track.status === 'rejected') throw track.reason;
    await sleep(begin + seconds * 1000 - now());
    await cluster.leader();
    const stuck = await crew.quit();
    const leftovers = await Promise.all(ARENAS.map((arena) => leftoversOf(arena, crew, stuck, queues)));
    const outages = pulse.outages();
    const { faults, stops } = recorder;
    const locks = ARENAS.map(({ lock, ttl }, i) => ({
      lock,
      ttl,
      history: recorder.history(lock),
      queue: queues.events().filter((event) => event.lock === lock),
      faults,
      outages,
      stops,
      judged: (who: string) => crew.kinds.get(who) !== 'python',
      sets: { fenced: sets.result(lock, 'fenced'), plain: sets.result(lock, 'plain') },
      leftovers: leftovers[i] ?? [],
    }));
    return { seed, seconds, locks, kinds: crew.kinds, stuck, crashes: crew.crashes };
  } finally {
    await crew.kill();
    await Promise.all([pulse.stop(), queues.stop(), sets.stop()]);
    await cluster.stop();
  }
}

async function follow(plan: readonly Planned[], track: TrackName, begin: number, crew: Crew): Promise<void> {
  for (const planned of plan.filter((one) => one.track === track)) {
    await sleep(Math.max(0, begin + planned.at - now()));
    await inflict(planned, crew);
  }
}

/** All contenders, with those that come in the place of the killed. */
class Crew {
  readonly cluster: FaultCluster;
  readonly recorder = new Recorder();
  readonly kinds = new Map<string, ContenderKind>();
  readonly crashes: string[] = [];
  readonly #resource: string;
  readonly #present = new Set<Contender>();

  constructor(cluster: FaultCluster, resource: string) {
    this.cluster = cluster;
    this.#resource = resource;
  }

  start(): void {
    for (const arena of ARENAS) for (const kind of arena.contenders) this.#add(arena, kind);
  }

  victims(): Contender[] {
    const rough = ARENAS.filter((arena) => arena.rough).map(({ lock }) => lock);
    return [...this.#present].filter(({ orders }) => rough.includes(orders.lock));
  }

  replace(contender: Contender): void {
    const arena = ARENAS.find(({ lock }) => lock === contender.orders.lock);
    if (arena === undefined) throw new Error(`nobody knows the lock of ${contender.who}`);
    const over = this.recorder.begin('contender killed', [contender.who]);
    contender.kill();
    this.recorder.listener(arena.lock)({ at: now(), who: contender.who, kind: 'died' });
    over();
    this.#add(arena, contender.kind);
  }

  /** Lets all finish their turns. Resolves to those that did not. */
  async quit(): Promise<string[]> {
    // Each in line may have a python-etcd before it that only its TTL removes.
    const patience = Math.max(...ARENAS.map(({ ttl, contenders }) => ttl * contenders.length)) * 1000;
    const ended = [...this.#present].map((contender) => contender.ended);
    for (const contender of this.#present) contender.quit();
    await Promise.race([Promise.all(ended), sleep(patience, undefined, { ref: false })]);
    const stuck = [...this.#present].map(({ who }) => who);
    await this.kill();
    return stuck;
  }

  async kill(): Promise<void> {
    const all = [...this.#present];
    for (const contender of all) contender.kill();
    await Promise.all(all.map(({ ended }) => ended));
  }

  #add({ lock, ttl, orders, others }: Arena, kind: ContenderKind): void {
    const number = this.kinds.size + 1;
    const who = `${lock}-${kind}-${number}`;
    const { urls } = this.cluster;
    const first = number % urls.length;
    const contender = new Contender(
      kind,
      {
        who,
        lock,
        ttl,
        endpoints: [...urls.slice(first), ...urls.slice(0, first)],
        resource: this.#resource,
        ...orders,
        ...(number % 2 === 0 ? others : {}),
      },
      this.recorder.listener(lock),
    );
    this.kinds.set(who, kind);
    this.#present.add(contender);
    void contender.ended.then((crash) => {
      this.#present.delete(contender);
      if (crash !== undefined) this.crashes.push(crash);
    });
  }
}

/** Keys of contenders of this package that ended as they should, and all that are there when their TTL has passed. */
async function leftoversOf(
  { lock, ttl }: Arena,
  { cluster, recorder, kinds }: Crew,
  stuck: readonly string[],
  queues: QueueLog,
): Promise<string[]> {
  const [member] = await cluster.followers();
  const url = member?.etcd.url;
  const ownerOf = ownersIn(recorder.history(lock));
  const killed = recorder.faults.filter(({ kind }) => kind === 'contender killed').flatMap(({ targets }) => targets);
  const mayLeave = (who = ''): boolean => kinds.get(who) === 'python' || killed.includes(who) || stuck.includes(who);
  const wrong = (await queueOn(lock, url)).filter(({ value }) => !mayLeave(ownerOf(value))).map(({ key }) => key);
  const later = await until(
    () => queueOn(lock, url),
    (queue) => queue.length === 0,
    { timeout: (ttl + 2) * 1000, every: 100 },
  ).catch(() => queueOn(lock, url));
  // The log has all there was to see once it knows of the last removal, too.
  await until(
    () => queues.events().filter((event) => event.lock === lock),
    (events) => events.filter(({ action }) => action === 'queued').length * 2 - events.length === later.length,
  );
  return [...new Set([...wrong, ...later.map(({ key }) => key)])];
}
