import { randomUUID } from 'node:crypto';
import { apart } from '../contestants/apart.mjs';
import { pythonEtcd } from '../contestants/python.mjs';
import { startProxy } from '../setting/proxy.mjs';
import { alternate, among, titlesOf, WARM_UP } from './rounds.mjs';

/** Milliseconds, longer than any answer takes: shows which requests are sent without waiting for an answer. */
const COUNTING_DELAY = 20;

const contestants = async (url) => [
  await apart('lock', url),
  await apart('manager', url),
  await apart('writes', url),
  await apart('requests', url),
  pythonEtcd(url),
  await apart('etcd3', url),
];

/**
 * Measures milliseconds per acquire and release of an uncontended lock, by leg. All legs share the same rounds, so that a slow
 * drift of the machine's speed does not affect the difference between two legs.
 * @param urls URLs of etcd, by leg
 */
export async function uncontended(urls, { rounds, times }) {
  const legs = [];
  for (const [leg, url] of Object.entries(urls)) legs.push({ leg, all: await contestants(url) });
  const everyone = legs.flatMap(({ leg, all }) =>
    all.map((contestant) => ({ ...contestant, id: leg + contestant.id })),
  );
  return among(everyone, async () => {
    for (const contestant of everyone) await cycles(contestant, WARM_UP * times);
    const taken = await alternate(everyone, rounds, (contestant) => cycles(contestant, times));
    const results = ({ leg, all }) => ({
      titles: titlesOf(all),
      rounds: Object.fromEntries(all.map(({ id }) => [id, taken[leg + id]])),
    });
    return Object.fromEntries(legs.map((one) => [one.leg, results(one)]));
  });
}

/** Counts requests, round trips and new connections of the second cycle, and the connections of the first one. */
export async function countCycles(etcd) {
  const proxy = await startProxy(etcd.url, { delay: COUNTING_DELAY });
  try {
    return await among(await contestants(proxy.url), async (all) => {
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

const cycles = (contestant, times) => contestant.cycles(`cycles-${randomUUID()}`, times);
