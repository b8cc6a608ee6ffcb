import { etcdctl } from '../contestants/etcdctl.mjs';
import { bareHandOver } from '../contestants/floors.mjs';
import { ours } from '../contestants/ours.mjs';
import { pythonEtcd } from '../contestants/python.mjs';
import { pollsAt, watchesAt } from '../setting/etcd.mjs';
import { startProxy } from '../setting/proxy.mjs';
import { until } from '../setting/until.mjs';
import { alternate, among, titlesOf, WARM_UP } from './rounds.mjs';

const contestants = (url) => [
  ours('lock', url),
  ours('manager', url),
  bareHandOver(url),
  pythonEtcd(url),
  etcdctl(url),
];

/** Measures milliseconds from the call of release until the acquire of a waiter, whose watch etcd has registered before. */
export function handOver(etcd, url, { rounds, times }) {
  return among(contestants(url), async (all) => {
    for (const contestant of all) if (!contestant.startsAnew) await passOnTimes(etcd, contestant, WARM_UP * times);
    const taken = await alternate(all, rounds, (contestant) =>
      passOnTimes(etcd, contestant, timesOf(contestant, times)),
    );
    return { titles: titlesOf(all), rounds: taken };
  });
}

/** Fewer samples, without a warm-up, for a contestant that starts a process per hand-over: it is slow and does not get faster. */
const timesOf = ({ startsAnew }, times) => (startsAnew ? Math.ceil(times / 20) : times);

/** Counts requests by kind from the call of release until the waiter holds the lock. */
export async function countHandOver(etcd) {
  const proxy = await startProxy(etcd.url);
  try {
    return await among([ours('lock', proxy.url), ours('manager', proxy.url), pythonEtcd(proxy.url)], async (all) => {
      const counted = {};
      for (const contestant of all) {
        await contestant.hold();
        await queued(etcd, contestant);
        await proxy.take();
        await contestant.passOn();
        const { requests, trips, kinds } = await proxy.take();
        counted[contestant.id] = { requests, trips, kinds };
        await contestant.giveBack();
      }
      return counted;
    });
  } finally {
    await proxy.stop();
  }
}

async function passOnTimes(etcd, contestant, times) {
  const took = [];
  await contestant.hold();
  for (let i = 0; i < times; i += 1) {
    await queued(etcd, contestant);
    took.push(await contestant.passOn());
  }
  await contestant.giveBack();
  return took;
}

async function queued(etcd, contestant) {
  const waiting = contestant.waitsBy === 'v3' ? watchesAt : pollsAt;
  const before = await waiting(etcd.url);
  await contestant.queue();
  await until(
    () => waiting(etcd.url),
    (now) => now > before,
    { every: 1 },
  );
}
