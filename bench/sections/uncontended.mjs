import { randomUUID } from 'node:crypto';
import { npmEtcd3 } from '../contestants/etcd3.mjs';
import { threeRequests, twoWrites } from '../contestants/floors.mjs';
import { ours } from '../contestants/ours.mjs';
import { pythonEtcd } from '../contestants/python.mjs';
import { clocked } from '../setting/clock.mjs';
import { startProxy } from '../setting/proxy.mjs';
import { alternate, among, titlesOf } from './rounds.mjs';

/** Longer than any answer takes: whatever is sent without waiting is seen to be. */
const COUNTING_DELAY = 20;

const contestants = (url) => [
  ours('lock', url),
  ours('manager', url),
  twoWrites(url),
  threeRequests(url),
  pythonEtcd(url),
  npmEtcd3(url),
];

/** Milliseconds per acquire and release of a lock that nobody else wants. */
export function uncontended(url, { rounds, times }) {
  return among(contestants(url), async (all) => {
    for (const contestant of all) await cycles(contestant, times);
    return { titles: titlesOf(all), rounds: await alternate(all, rounds, (contestant) => cycles(contestant, times)) };
  });
}

/** Requests, round trips and connections of a cycle, all connections being open already, and of the first one. */
export async function countCycles(etcd) {
  const proxy = await startProxy(etcd.url, { delay: COUNTING_DELAY });
  try {
    return await among(contestants(proxy.url), async (all) => {
      const counted = {};
      for (const contestant of all) {
        const name = `counted-${randomUUID()}`;
        await proxy.take();
        await runCycles(contestant, name, 1);
        const { connections } = await proxy.take();
        await runCycles(contestant, name, 1);
        const { requests, trips, kinds, ...second } = await proxy.take();
        counted[contestant.id] = { requests, trips, kinds, connections, further: second.connections };
      }
      return counted;
    });
  } finally {
    await proxy.stop();
  }
}

const cycles = (contestant, times) => runCycles(contestant, `cycles-${randomUUID()}`, times);

async function runCycles(contestant, name, times) {
  if (contestant.cycles) return contestant.cycles(name, times);
  const took = [];
  for (let i = 0; i < times; i += 1) took.push(await clocked(() => contestant.cycle(name)));
  return took;
}
