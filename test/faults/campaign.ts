import { setTimeout as sleep } from 'node:timers/promises';
import { queueOn } from '../support/locks.ts';
import { now } from '../support/stalls/stalls.mjs';
import { until } from '../support/until.ts';
import type { ContenderKind } from './contender.ts';
import { ARENAS, type Arena, Crew } from './crew.ts';
import { startFaultCluster } from './fault-cluster.ts';
import { type GuardedSets, startGuardedSets } from './guarded-sets.ts';
import { inflict } from './inflict.ts';
import { ownersIn } from './line.ts';
import { startPulse } from './pulse.ts';
import { type QueueLog, watchQueues } from './queue-log.ts';
import { type Planned, schedule, type TrackName } from './schedule.ts';
import type { Trial } from './waits.ts';

const TRACKS: readonly TrackName[] = ['members', 'network', 'contenders'];

/** The outcome of a campaign for one lock. */
export interface LockOutcome extends Trial {
  readonly lock: string;
  readonly sets: Readonly<Record<'fenced' | 'plain', ReturnType<GuardedSets['result']>>>;
  /** Keys that should have been removed. */
  readonly leftovers: readonly string[];
}

export interface Outcome {
  readonly seed: number;
  readonly seconds: number;
  readonly locks: readonly LockOutcome[];
  readonly kinds: ReadonlyMap<string, ContenderKind>;
  /** Contenders that did not end when asked to quit. */
  readonly stuck: readonly string[];
  /** Exit codes and output of contenders that failed without being killed. */
  readonly crashes: readonly string[];
}

/** Runs contenders on a cluster for that many seconds, with the faults that the seed gives. */
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
    // Throws only after all tracks have ended: none may touch a cluster that has been stopped.
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

/** Returns keys left by contenders of this package that ended normally, and all keys that outlive their TTL. */
async function leftoversOf(
  { lock, ttl }: Arena,
  { cluster, recorder, kinds }: Crew,
  stuck: readonly string[],
  queues: QueueLog,
): Promise<string[]> {
  const [member] = await cluster.followers();
  const url = member?.etcd.url;
  const ownerOf = ownersIn(recorder.history(lock));
  const died = recorder.history(lock).flatMap(({ kind, who }) => (kind === 'died' ? who : []));
  const mayLeave = (who = ''): boolean => kinds.get(who) === 'python' || died.includes(who) || stuck.includes(who);
  const wrong = (await queueOn(lock, url)).filter(({ value }) => !mayLeave(ownerOf(value))).map(({ key }) => key);
  const later = await until(
    () => queueOn(lock, url),
    (queue) => queue.length === 0,
    { timeout: (ttl + 2) * 1000, every: 100 },
  ).catch(() => queueOn(lock, url));
  // The log is complete once it contains the last removal.
  await until(
    () => queues.events().filter((event) => event.lock === lock),
    (events) => events.filter(({ action }) => action === 'queued').length * 2 - events.length === later.length,
  );
  return [...new Set([...wrong, ...later.map(({ key }) => key)])];
}
