import { EtcdClient, Lock } from 'etcd-v2-lock';
import { startPython } from './python.mjs';

const CLIENTS = 10;

/** A queue of `Lock`s in which everyone has an entry, as if each came from another process. */
export function queueOfLocks(url) {
  const clients = Array.from({ length: CLIENTS }, () => new EtcdClient({ endpoints: [url] }));
  let holder;
  let name;
  let waiting = [];
  let served = 0;
  return {
    id: 'lock',
    title: 'this package, `Lock`',
    async hold(lock) {
      name = lock;
      holder = new Lock(clients[0], name);
      await holder.acquire({ lockTtl: 600 });
    },
    async queue() {
      const lock = new Lock(clients[waiting.length % CLIENTS], name);
      waiting.push(
        lock.acquire({ lockTtl: 600 }).then(() => {
          served = performance.now();
          return lock.release();
        }),
      );
    },
    async drain() {
      const start = performance.now();
      await holder.release();
      await Promise.all(waiting);
      waiting = [];
      return served - start;
    },
    stop: () => Promise.all(clients.map((client) => client.close())),
  };
}

/** The same of python-etcd's: a thread and a connection for each. */
export function queueOfPython(url) {
  const peer = startPython(url);
  let name;
  return {
    id: 'python',
    title: 'python-etcd `Lock`',
    hold: (lock) => {
      name = lock;
      return peer.ask('hold', { name });
    },
    queue: () => peer.ask('queue', { name }),
    drain: () => peer.ask('drain'),
    stop: () => peer.stop(),
  };
}
