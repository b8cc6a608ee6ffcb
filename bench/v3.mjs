// The measurements on etcd's v3 API.
import { loadavg } from 'node:os';
import { v3 } from './contestants/v3.mjs';
import { aged } from './sections/aged.mjs';
import { atOnce } from './sections/at-once.mjs';
import { countDrain, drain } from './sections/drain.mjs';
import { countHandOver, handOver } from './sections/hand-over.mjs';
import { held } from './sections/held.mjs';
import { countLongQueue } from './sections/long-queue.mjs';
import { onceEach } from './sections/once-each.mjs';
import { countCycles, countRaftWrites, uncontended } from './sections/uncontended.mjs';

export const FULL_V3 = {
  cycles: { rounds: 84, times: 50 },
  aged: { ages: [30_000, 100_000], rounds: 42, times: 50 },
  onceEach: { rounds: 14, locks: 1000 },
  atOnce: { rounds: 28, times: 10 },
  handOvers: { rounds: 14, times: 15 },
  sizes: [10, 100, 1000],
  drainRounds: 2,
  lengths: [11, 1000],
  held: { ttl: 30, thirds: 3, count: 1000 },
};
export const SHORT_V3 = {
  cycles: { rounds: 4, times: 30 },
  aged: { ages: [1000], rounds: 4, times: 30 },
  onceEach: { rounds: 2, locks: 100 },
  atOnce: { rounds: 4, times: 5 },
  handOvers: { rounds: 4, times: 10 },
  sizes: [10, 50],
  drainRounds: 2,
  lengths: [11, 200],
  held: { ttl: 6, thirds: 3, count: 200 },
};

/**
 * @param etcd one with its data on a disk
 * @param unsynced one with its data in memory; undefined if there is too little memory
 * @param step runs one measurement, given its name
 */
export async function measureV3({ etcd, unsynced }, plan, step) {
  const { sizes, drainRounds } = plan;
  const api = v3();
  const loaded = (name, work) => withLoad(() => step(name, work));
  return {
    uncontended: {
      counts: await step('v3: requests of a cycle', () => countCycles(api, etcd)),
      raftWrites: await step('v3: raft writes of a cycle', () => countRaftWrites(api, etcd)),
      ...(await withLoad(() =>
        step('v3: uncontended', () =>
          uncontended(api, { direct: etcd.url, ...(unsynced && { memory: unsynced.url }) }, plan.cycles),
        ),
      )),
    },
    atOnce: {
      direct: await loaded('v3: many locks at once', () => atOnce(api, etcd.url, plan.atOnce)),
      memory:
        unsynced && (await loaded('v3: many locks at once, in memory', () => atOnce(api, unsynced.url, plan.atOnce))),
    },
    // In memory if possible: the disk would only add the same time to each cycle.
    aged: await loaded('v3: old and new locks', () => aged(api, (unsynced ?? etcd).url, plan.aged)),
    onceEach: await loaded('v3: many locks, once each', () => onceEach(api, (unsynced ?? etcd).url, plan.onceEach)),
    handOver: {
      counts: await step('v3: requests of a hand-over', () => countHandOver(api, etcd)),
      direct: await loaded('v3: hand-over', () => handOver(api, etcd, etcd.url, plan.handOvers)),
      memory:
        unsynced &&
        (await loaded('v3: hand-over, in memory', () => handOver(api, unsynced, unsynced.url, plan.handOvers))),
    },
    drain: {
      counts: await step('v3: requests of a drain', () => countDrain(api, etcd, sizes)),
      direct: await loaded('v3: draining', () => drain(api, etcd, etcd.url, sizes, drainRounds)),
    },
    longQueue: await step('v3: a long queue', () => countLongQueue(etcd, plan.lengths)),
    held: await step('v3: held locks', () => held(etcd, plan.held)),
  };
}

/** Adds the machine's load before and after the work: the number of processes that ran or waited to run, in the last minute. */
async function withLoad(work) {
  const [before] = loadavg();
  const result = await work();
  return { ...result, load: [before, loadavg()[0]] };
}
