// A queue of this package's waiters, one entry each, as from separate processes: `queue-of-ours.mjs URL FACE API`, controlled by
// JSON lines.
import { EtcdClient, Lock, LockManager } from 'etcd-v2-lock';
import { answerLines } from '../setting/answering.mjs';

const TTL = 600;
const [url, face, api] = process.argv.slice(2);
const clients = [];
let holder;
let waiting = [];
let served = 0;

/** Acquires a lock; returns an object with `release()`. */
const faces = {
  async lock(client, name) {
    const lock = new Lock(client, name);
    await lock.acquire({ lockTtl: TTL });
    return lock;
  },
  manager: (client, name) => new LockManager(client, { ttl: TTL }).acquire(name),
};
const acquire = faces[face];
/** Waiters of managers on one client would share one entry. */
const most = face === 'manager' ? Number.POSITIVE_INFINITY : 10;

function clientFor(index) {
  clients[index % most] ??= new EtcdClient({ endpoints: [url], api });
  return clients[index % most];
}

await answerLines({
  async hold({ name }) {
    holder = await acquire(clientFor(0), name);
  },
  async queue({ name }) {
    waiting.push(
      acquire(clientFor(waiting.length + 1), name).then((held) => {
        served = performance.now();
        return held.release();
      }),
    );
  },
  /** Returns milliseconds from the release until the last waiter has acquired the lock. */
  async drain() {
    const start = performance.now();
    await holder.release();
    await Promise.all(waiting);
    waiting = [];
    return served - start;
  },
});
await Promise.all(clients.map((client) => client.close()));
