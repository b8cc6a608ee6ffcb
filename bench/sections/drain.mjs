import { randomUUID } from 'node:crypto';
import { startProxy } from '../setting/proxy.mjs';
import { waitersAt } from '../setting/waiters.mjs';
import { alternate, among, titlesOf } from './rounds.mjs';

/** Minimum hand-overs per round: one drain of a queue of ten ends before anything is warm. */
const HAND_OVERS = 200;

/** Number of concurrent appends and listings while a queue is filled. */
const AT_ONCE = 50;

/** Measures milliseconds per hand-over while a queue drains, for each size of the queue. */
export function drain(api, etcd, url, sizes, rounds) {
  return among(
    api.queues().map((make) => make(url)),
    async (queues) => {
      const times = (size) => (queue) => drainTimes(api, etcd, queue, size);
      for (const queue of queues) await times(sizes[0])(queue);
      const bySize = {};
      for (const size of sizes) bySize[size] = await alternate(queues, rounds, times(size));
      return { titles: titlesOf(queues), bySize };
    },
  );
}

/** Counts requests and bytes per hand-over, by the size of the queue. */
export async function countDrain(api, etcd, sizes) {
  const proxy = await startProxy(etcd.url);
  try {
    const counted = {};
    for (const makeQueue of api.queues())
      for (const size of sizes)
        await among([makeQueue(proxy.url)], async ([queue]) => {
          const { filled, passed } = await drainOnce(api, etcd, queue, size, proxy);
          const { requests, kinds, bytes } = passed;
          counted[queue.id] = {
            ...counted[queue.id],
            [size]: {
              perHandOver: requests / size,
              bytesPerHandOver: bytes / size,
              kinds,
              appends: filled.kinds.append,
              sockets: filled.open,
            },
          };
        });
    return counted;
  } finally {
    await proxy.stop();
  }
}

/** Returns the milliseconds per hand-over of each drain in a round. */
async function drainTimes(api, etcd, queue, size) {
  const took = [];
  for (let drained = 0; drained < HAND_OVERS; drained += size)
    took.push((await drainOnce(api, etcd, queue, size)).took / size);
  return took;
}

async function drainOnce(api, etcd, queue, size, proxy) {
  await queue.hold(`drained-${randomUUID()}`);
  const waiting = await waitersAt[api.id](etcd.url);
  for (let begun = 0; begun < size; begun += AT_ONCE) {
    const more = Math.min(AT_ONCE, size - begun);
    for (let i = 0; i < more; i += 1) await queue.queue();
    await waiting(begun + more);
  }
  const filled = await proxy?.take();
  const took = await queue.drain();
  return { took, filled, passed: await proxy?.take() };
}
