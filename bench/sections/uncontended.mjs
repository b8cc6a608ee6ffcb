import { randomUUID } from 'node:crypto';
import { raftWritesAt } from '../setting/etcd.mjs';
import { startProxy } from '../setting/proxy.mjs';
import { until } from '../setting/until.mjs';
import { alternate, among, timesOf, titlesOf, WARM_UP } from './rounds.mjs';

/** Milliseconds, longer than any answer takes: shows which requests are sent without waiting for an answer. */
const COUNTING_DELAY = 20;

/** Number of cycles whose raft writes are counted. */
const COUNTED = 20;

/**
 * Measures milliseconds per acquire and release of an uncontended lock, by leg. All legs share the same rounds, so that a slow
 * drift of the machine's speed does not affect the difference between two legs.
 * @param api who takes part
 * @param urls URLs of etcd, by leg
 */
export async function uncontended(api, urls, { rounds, times }) {
  const legs = [];
  for (const [leg, url] of Object.entries(urls)) legs.push({ leg, all: await api.cycles(url) });
  const everyone = legs.flatMap(({ leg, all }) =>
    all.map((contestant) => ({ ...contestant, id: leg + contestant.id })),
  );
  return among(everyone, async () => {
    for (const contestant of everyone) if (!contestant.startsAnew) await cycles(contestant, WARM_UP * times);
    const taken = await alternate(everyone, rounds, (contestant) => cycles(contestant, timesOf(contestant, times)));
    const results = ({ leg, all }) => ({
      titles: titlesOf(all),
      rounds: Object.fromEntries(all.map(({ id }) => [id, taken[leg + id]])),
    });
    return Object.fromEntries(legs.map((one) => [one.leg, results(one)]));
  });
}

/** Counts requests, round trips and new connections of the second cycle, and the connections of the first one. */
export async function countCycles(api, etcd) {
  const proxy = await startProxy(etcd.url, { delay: COUNTING_DELAY });
  try {
    return await among(await api.countedCycles(proxy.url), async (all) => {
      const counted = {};
      for (const contestant of all) {
        const name = `counted-${randomUUID()}`;
        await proxy.take();
        await contestant.cycles(name, 1);
        const { connections } = await proxy.take();
        await contestant.cycles(name, 1);
        const { requests, trips, kinds, ...second } = await proxy.take();
        counted[contestant.id] = { requests, trips, kinds, connections, further: second.connections };
      }
      return counted;
    });
  } finally {
    await proxy.stop();
  }
}

/** Counts the raft writes of a cycle, by contestant. Needs an etcd that nobody else uses. */
export async function countRaftWrites(api, etcd) {
  return among(await api.countedCycles(etcd.url), async (all) => {
    const counted = {};
    for (const contestant of all) {
      await cycles(contestant, 2);
      const before = await settledRaftWrites(etcd.url);
      await cycles(contestant, COUNTED);
      counted[contestant.id] = ((await settledRaftWrites(etcd.url)) - before) / COUNTED;
    }
    return counted;
  });
}

/** Waits until no more raft writes are made: a lease may be ended in the background. */
async function settledRaftWrites(url) {
  let last;
  return until(
    () => raftWritesAt(url),
    (now) => {
      const settled = now === last;
      last = now;
      return settled;
    },
    { every: 200 },
  );
}

const cycles = (contestant, times) => contestant.cycles(`cycles-${randomUUID()}`, times);
