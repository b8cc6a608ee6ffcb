import { randomUUID } from 'node:crypto';
import { queueOfLocks, queueOfPython } from '../contestants/queues.mjs';
import { pollsAt } from '../setting/etcd.mjs';
import { startProxy } from '../setting/proxy.mjs';
import { until } from '../setting/until.mjs';
import { alternate, among, titlesOf } from './rounds.mjs';

/** Minimum hand-overs per round: one drain of a queue of ten ends before anything is warm. */
const HAND_OVERS = 200;

/** Number of concurrent appends and listings while a queue is filled. */
const AT_ONCE = 50;

/** Measures milliseconds per hand-over while a queue drains, for each size of the queue. */
export function drain(etcd, url, sizes, rounds) {
  return among([queueOfLocks(url), queueOfPython(url)], async (queues) => {
    for (const queue of queues) await drainTimes(etcd, queue, sizes[0]);
    const bySize = {};
    for (const size of sizes) bySize[size] = await alternate(queues, rounds, (queue) => drainTimes(etcd, queue, size));
    return { titles: titlesOf(queues), bySize };
  });
}

/** Counts requests per hand-over, by the size of the queue. */
export async function countDrain(etcd, sizes) {
  const proxy = await startProxy(etcd.url);
  try {
    const counted = {};
    for (const makeQueue of [queueOfLocks, queueOfPython])
      for (const size of sizes)
        await among([makeQueue(proxy.url)], async ([queue]) => {
          const { sockets, passed } = await drainOnce(etcd, queue, size, proxy);
          counted[queue.id] = {
            ...counted[queue.id],
            [size]: { perHandOver: passed.requests / size, kinds: passed.kinds, sockets },
          };
        });
    return counted;
  } finally {
    await proxy.stop();
  }
}

/** Returns the milliseconds per hand-over of each drain in a round. */
async function drainTimes(etcd, queue, size) {
  const took = [];
  for (let drained = 0; drained < HAND_OVERS; drained += size)
    took.push((await drainOnce(etcd, queue, size)).took / size);
  return took;
}

async function drainOnce(etcd, queue, size, proxy) {
  await queue.hold(`drained-${randomUUID()}`);
  const before = await pollsAt(etcd.url);
  for (let begun = 0; begun < size; begun += AT_ONCE) {
    const more = Math.min(AT_ONCE, size - begun);
    for (let i = 0; i < more; i += 1) await queue.queue();
    await until(
      () => pollsAt(etcd.url),
      (polls) => polls >= before + begun + more,
    );
  }
  const { open: sockets } = (await proxy?.take()) ?? {};
  const took = await queue.drain();
  return { took, sockets, passed: await proxy?.take() };
}
