import { randomUUID } from 'node:crypto';
import { EtcdClient, Lock } from 'etcd-v2-lock';
import { waitersOfOurs, waitersOfPython } from '../contestants/waiters-of.mjs';
import { entriesOf, pollsAt } from '../setting/etcd.mjs';
import { startProxy } from '../setting/proxy.mjs';
import { until } from '../setting/until.mjs';

/** Number of warm-up waiters: one-time compilation and connections are no cost of a waiter. */
const WARM = 20;

const makers = {
  manager: (url) => waitersOfOurs('manager', url),
  lock: (url) => waitersOfOurs('lock', url),
  python: waitersOfPython,
};

/**
 * Measures the cost of the waiters of one process while another client holds the lock, and until all of them have held it.
 * @param face 'manager', whose waiters share one entry in etcd's queue; 'lock' or 'python', whose waiters have one entry each
 */
export async function waiters(etcd, face, count) {
  const proxy = await startProxy(etcd.url);
  const elsewhere = new EtcdClient({ endpoints: [etcd.url] });
  const crowd = makers[face](proxy.url);
  try {
    await crowd.settle();
    await withHolder(elsewhere, async (name, release) => {
      await crowd.queue(name, WARM);
      await release();
      await crowd.served();
    });
    await crowd.settle();
    await proxy.take();
    return await withHolder(elsewhere, async (name, release) => {
      const before = await pollsAt(etcd.url);
      await crowd.queue(name, count);
      const inQueue = face === 'manager' ? 1 : count;
      await until(
        () => pollsAt(etcd.url),
        (polls) => polls >= before + inQueue,
      );
      const keys = (await entriesOf(etcd.url, name)).length - 1;
      const used = await crowd.usage();
      const waiting = await proxy.take();
      await release();
      const { served, inOrder, cpu } = await crowd.served();
      const serving = await proxy.take();
      return {
        face,
        title: crowd.title,
        count,
        keys,
        sockets: waiting.open,
        heapEach: used.heap && used.heap / count,
        residentEach: used.resident / count,
        cpuEach: used.cpu / count,
        cpuServedEach: cpu / count,
        requestsEach: (waiting.requests + serving.requests) / count,
        served,
        inOrder,
      };
    });
  } finally {
    await crowd.stop();
    await elsewhere.close();
    await proxy.stop();
  }
}

async function withHolder(client, work) {
  const name = `waited-${randomUUID()}`;
  const holder = new Lock(client, name);
  await holder.acquire({ lockTtl: 600 });
  return work(name, () => holder.release());
}
