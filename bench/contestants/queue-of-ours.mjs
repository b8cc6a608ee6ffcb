// A queue of `Lock`s, one entry each, as from separate processes: `queue-of-locks.mjs URL`, controlled by JSON lines.
import { EtcdClient, Lock } from 'etcd-v2-lock';
import { answerLines } from '../setting/answering.mjs';

const CLIENTS = 10;
const TTL = 600;
const clients = Array.from({ length: CLIENTS }, () => new EtcdClient({ endpoints: [process.argv[2]] }));
let holder;
let waiting = [];
let served = 0;

await answerLines({
  async hold({ name }) {
    holder = new Lock(clients[0], name);
    await holder.acquire({ lockTtl: TTL });
  },
  async queue({ name }) {
    const lock = new Lock(clients[waiting.length % CLIENTS], name);
    waiting.push(
      lock.acquire({ lockTtl: TTL }).then(() => {
        served = performance.now();
        return lock.release();
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
