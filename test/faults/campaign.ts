import { setTimeout as sleep } from 'node:timers/promises';
import { startBridges } from '../support/bridge-process.ts';
import { now } from '../support/stalls/stalls.mjs';
import { until } from '../support/until.ts';
import { type ContenderKind, isOurs } from './contender.ts';
import { type Arena, Crew, ttlOf } from './crew.ts';
import { leftIn } from './expired.ts';
import { startFaultCluster } from './fault-cluster.ts';
import { type GuardedSets, startGuardedSets } from './guarded-sets.ts';
import type { QueueEvent } from './history.ts';
import { inflict } from './inflict.ts';
import { ownersIn } from './line.ts';
import { startPulse } from './pulse.ts';
import type { QueueLog } from './queue-log.ts';
import { revokedByEtcd } from './revoked.ts';
import { type Planned, schedule, type TrackName } from './schedule.ts';
import type { TestedStore } from './stores/store.ts';
import { servedBy } from './use-cluster.ts';
import type { Trial } from './waits.ts';

const TRACKS: readonly TrackName[] = ['members', 'network', 'contenders', 'bridges'];

/** The outcome of a campaign for one lock. */
export interface LockOutcome extends Trial {
  readonly lock: string;
  readonly sets: Readonly<Record<'fenced' | 'plain', ReturnType<GuardedSets['result']>>>;
  /** Keys that should have been removed. */
  readonly leftovers: readonly string[];
  /** Removals that etcd made by mistake. */
  readonly revoked: readonly QueueEvent[];
}

export interface Outcome {
  readonly seed: number;
  readonly seconds: number;
  readonly locks: readonly LockOutcome[];
  readonly kinds: ReadonlyMap<string, ContenderKind>;
  /** Ids of the leases that are left after their TTLs. */
  readonly leases: readonly string[];
  /** Contenders that did not end when asked to quit. */
  readonly stuck: readonly string[];
  /** Exit codes and output of contenders that failed without being killed. */
  readonly crashes: readonly string[];
}

/**
 * Runs contenders of that store on a cluster for that many seconds, with the faults that the seed gives.
 * @param bridged whether python-etcd takes part on etcd v3, through a bridge for each member
 */
export async function runCampaign(
  store: TestedStore,
  { seed, seconds, bridged }: { readonly seed: number; readonly seconds: number; readonly bridged: boolean },
): Promise<Outcome> {
  const cluster = await startFaultCluster();
  const sets = await startGuardedSets();
  const queues = await store.watchQueues(cluster.members.map(({ etcd }) => etcd.url));
  const pulse = startPulse(cluster.urls, store);
  const bridges = bridged
    ? await startBridges(cluster.members.map((member) => servedBy(member, cluster).map(({ url }) => url)))
    : [];
  const crew = new Crew(store.api, cluster, bridges, sets.url);
  try {
    crew.start();
    const { arenas, recorder } = crew;
    await until(
      () => arenas.map(({ lock }) => recorder.history(lock).filter(({ kind }) => kind === 'held').length),
      (holds) => holds.every((count) => count > 0),
    );
    const begin = now();
    const plan = schedule(seed, seconds, bridged);
    const tracks = await Promise.allSettled(TRACKS.map((track) => follow(plan, track, begin, crew)));
    // Throws only after all tracks have ended: none may touch a cluster that has been stopped.
    for (const track of tracks) if (track.status === 'rejected') throw track.reason;
    await sleep(begin + seconds * 1000 - now());
    await cluster.leader();
    const stuck = await crew.quit();
    const leftovers = await Promise.all(arenas.map((arena) => leftoversOf(arena, { crew, store, stuck, queues })));
    const leases = await leasesLeft(store, crew);
    const outages = pulse.outages();
    const { faults, stalls, stops } = recorder;
    const requests = cluster.members.flatMap(({ proxy }) => proxy.requests);
    const locks = arenas.map(({ lock, ttl }, i) => {
      const queue = queues.events().filter((event) => event.lock === lock);
      return {
        api: store.api,
        lock,
        ttl,
        history: recorder.history(lock),
        queue,
        faults,
        outages,
        stops,
        stalls,
        // A request for several locks reports each of them only once it holds all.
        judged: (who: string) => isOurs(crew.kinds.get(who)) && crew.kinds.get(who) !== 'several',
        sets: { fenced: sets.result(lock, 'fenced'), plain: sets.result(lock, 'plain') },
        leftovers: leftovers[i] ?? [],
        revoked: revokedByEtcd(queue, requests, ttl),
      };
    });
    return { seed, seconds, locks, kinds: crew.kinds, leases, stuck, crashes: crew.crashes };
  } finally {
    await crew.kill();
    await Promise.all(bridges.map((bridge) => bridge.end()));
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

/** Returns keys left by contenders of this package that ended normally, and all keys that outlive their TTL. */
async function leftoversOf(
  arena: Arena,
  {
    crew: { cluster, recorder, kinds },
    store,
    stuck,
    queues,
  }: {
    readonly crew: Crew;
    readonly store: TestedStore;
    readonly stuck: readonly string[];
    readonly queues: QueueLog;
  },
): Promise<string[]> {
  const { lock } = arena;
  const { etcd } = await cluster.leader();
  const queue = () => store.queue(lock, etcd.url);
  const ownerOf = ownersIn(recorder.history(lock));
  const died = recorder.history(lock).flatMap(({ kind, who }) => (kind === 'died' ? who : []));
  const mayLeave = (who = ''): boolean => !isOurs(kinds.get(who)) || died.includes(who) || stuck.includes(who);
  const wrong = (await queue()).filter(({ value }) => !mayLeave(ownerOf(value))).map(({ key }) => key);
  const later = await leftIn(cluster, store, longestTtl(arena), (url) => store.queue(lock, url));
  // The log is complete once it contains the last removal.
  await until(
    () => queues.events().filter((event) => event.lock === lock),
    (events) => events.filter(({ action }) => action === 'queued').length * 2 - events.length === later.length,
  );
  return [...new Set([...wrong, ...later.map(({ key }) => key)])];
}

/** Returns the leases that are left once all of them must have expired. */
const leasesLeft = (store: TestedStore, { cluster, arenas }: Crew): Promise<readonly string[]> =>
  leftIn(cluster, store, Math.max(...arenas.map(longestTtl)), (url) => store.leases(url));

const longestTtl = (arena: Arena): number => Math.max(...arena.contenders.map((kind) => ttlOf(kind, arena)));
