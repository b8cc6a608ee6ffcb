// A worker that ends well: on SIGTERM it stops its work, gives the lock back and leaves nothing behind.
import { setTimeout as sleep } from 'node:timers/promises';
import { EtcdClient, LockManager } from 'etcd-v2-lock';

const client = new EtcdClient({ endpoints: process.env.ETCD_ENDPOINTS?.split(',') ?? 'http://127.0.0.1:2379' });
const locks = new LockManager(client, { ttl: 15 });

const stop = new AbortController();
for (const name of ['SIGTERM', 'SIGINT']) process.once(name, () => stop.abort(new Error(name)));

try {
  // The same signal ends the wait for the lock …
  await locks.request('examples/worker', { signal: stop.signal }, async (held) => {
    console.log('working');
    // … and the work, which a loss ends, too.
    const signal = AbortSignal.any([stop.signal, held.signal]);
    while (!signal.aborted) await sleep(60_000, undefined, { signal }).catch(() => {});
  });
} catch (error) {
  if (error !== stop.signal.reason) throw error;
} finally {
  // Last of all. Were the work still under way, it would be told by `held.signal` and get five seconds to end.
  await client.close();
}
console.log('stopped');
