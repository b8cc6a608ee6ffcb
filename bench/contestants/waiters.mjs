// A process with many waiters: `node --expose-gc waiters.mjs URL`, controlled by JSON lines.
import { setTimeout as sleep } from 'node:timers/promises';
import { EtcdClient, Lock, LockManager } from 'etcd-v2-lock';
import { answerLines } from '../setting/answering.mjs';

const TTL = 600;
const client = new EtcdClient({ endpoints: [process.argv[2]] });
const locks = new LockManager(client, { ttl: TTL });
let waiting = [];
let order = [];
let before;

const operations = {
  async settle() {
    waiting = [];
    order = [];
    before = { heap: await heap(), resident: process.memoryUsage.rss(), cpu: cpu() };
  },
  async manager({ name, count }) {
    for (let i = 0; i < count; i += 1)
      waiting.push(
        locks.request(name, () => {
          order.push(i);
        }),
      );
  },
  async lock({ name, count }) {
    for (let i = 0; i < count; i += 1) {
      const lock = new Lock(client, name);
      waiting.push(
        lock.acquire({ lockTtl: TTL }).then(() => {
          order.push(i);
          return lock.release();
        }),
      );
    }
  },
  /** Returns bytes of heap and of resident memory, and milliseconds of CPU time, since `settle`. */
  async usage() {
    const used = cpu() - before.cpu;
    const live = await heap();
    before.cpu = cpu();
    return { heap: live - before.heap, resident: process.memoryUsage.rss() - before.resident, cpu: used };
  },
  /** Waits until all waiters have held the lock; returns their number and order, and the CPU time since `usage`. */
  async served() {
    await Promise.all(waiting);
    return { served: order.length, inOrder: order.every((index, i) => index === i), cpu: cpu() - before.cpu };
  },
};

/** Returns the used bytes after garbage collection, repeated for objects with finalizers. */
async function heap() {
  for (let i = 0; i < 3; i += 1) {
    gc();
    await sleep(20);
  }
  return process.memoryUsage().heapUsed;
}

function cpu() {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1000;
}

await answerLines(operations);
await client.close();
