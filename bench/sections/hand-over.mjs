import { startProxy } from '../setting/proxy.mjs';
import { waitersAt } from '../setting/waiters.mjs';
import { alternate, among, timesOf, titlesOf, WARM_UP } from './rounds.mjs';

/** Measures milliseconds from the call of release until the acquire of a waiter, whose watch etcd has registered before. */
export function handOver(api, etcd, url, { rounds, times }) {
  return among(api.handOvers(url), async (all) => {
    for (const contestant of all) if (!contestant.startsAnew) await passOnTimes(etcd, contestant, WARM_UP * times);
    const taken = await alternate(all, rounds, (contestant) =>
      passOnTimes(etcd, contestant, timesOf(contestant, times)),
    );
    return { titles: titlesOf(all), rounds: taken };
  });
}

/** Counts requests by kind from the call of release until the waiter holds the lock. */
export async function countHandOver(api, etcd) {
  const proxy = await startProxy(etcd.url);
  try {
    return await among(api.countedHandOvers(proxy.url), async (all) => {
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
  const waiting = await waitersAt[contestant.waitsBy ?? 'v2'](etcd.url);
  await contestant.queue();
  await waiting(1);
}
