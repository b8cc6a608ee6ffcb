// A worker that shuts down cleanly: on SIGTERM it stops its work, releases the lock and leaves no entry in the queue.
import { setTimeout as sleep } from 'node:timers/promises';
import { EtcdClient, LockManager } from 'etcd-v2-lock';

const client = new EtcdClient({ endpoints: process.env.ETCD_ENDPOINTS?.split(',') ?? 'http://127.0.0.1:2379' });
const locks = new LockManager(client, { ttl: 15 });

const stop = new AbortController();
for (const name of ['SIGTERM', 'SIGINT']) process.once(name, () => stop.abort(new Error(name)));

try {
  // One signal ends the wait for the lock, and the work.
  await locks.request('examples/worker', { signal: stop.signal }, async (held) => {
    console.log('working');
    // A loss of the lock ends the work too.
    const signal = AbortSignal.any([stop.signal, held.signal]);
    while (!signal.aborted) await sleep(60_000, undefined, { signal }).catch(() => {});
  });
} catch (error) {
  if (error !== stop.signal.reason) throw error;
} finally {
  // Close last: close() aborts `held.signal` of work that is still running, and waits up to five seconds for it. In an outage, it
  // rejects after that with the keys that it could not remove.
  await client.close().catch((error) => console.error(error.message));
}
console.log('stopped');
