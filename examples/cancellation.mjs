// Three ways to limit a wait. None of them leaves an entry in the queue.
import { EtcdClient, EtcdLockTimeout, LockManager } from 'etcd-v2-lock';

const client = new EtcdClient({ endpoints: process.env.ETCD_ENDPOINTS?.split(',') ?? 'http://127.0.0.1:2379' });
const locks = new LockManager(client);
const never = () => console.log('never printed');

const holder = await locks.acquire('examples/cancellation');
try {
  // A signal ends the wait: the request rejects with the reason of the signal. It does not end a hold: to stop the work too,
  // pass the signal to the work.
  const user = new AbortController();
  const waiting = locks.request('examples/cancellation', { signal: user.signal }, never);
  user.abort(new Error('the user left'));
  await waiting.catch((error) => console.log(`no longer waiting: ${error.message}`));

  // A timeout ends the wait: the error has the holder of the lock at that time.
  await locks.request('examples/cancellation', { timeout: 0.2 }, never).catch((error) => {
    if (!(error instanceof EtcdLockTimeout)) throw error;
    console.log(`not within 0.2 s: held by ${error.holder?.key === holder.key ? 'us' : error.holder?.value}`);
  });

  // `ifAvailable` does not wait at all.
  const held = await locks.acquire('examples/cancellation', { ifAvailable: true });
  console.log(held === null ? 'not available' : 'available');
} finally {
  await holder.release();
}
const { held, pending } = await locks.query('examples/cancellation');
console.log(`${held.length + pending.length} left in the queue`);
await client.close();
