// A job of many steps, which stops between two steps when the lock is lost.
import { setTimeout as sleep } from 'node:timers/promises';
import { EtcdClient, EtcdLockLost, LockManager } from 'etcd-v2-lock';

const steps = Number(process.argv[2] ?? 5);
const client = new EtcdClient({ endpoints: process.env.ETCD_ENDPOINTS?.split(',') ?? 'http://127.0.0.1:2379' });
// Lease in seconds: how long a crashed holder blocks others. It does not limit the job, because the lock is renewed.
const locks = new LockManager(client, { ttl: 6 });

try {
  await locks.request('examples/long-job', async (held) => {
    for (let step = 1; step <= steps; step += 1) {
      // Calls that accept a signal end at once when the lock is lost.
      await sleep(100, undefined, { signal: held.signal });
      // Check before each write that needs the lock. The check is correct even if the process was suspended until now.
      held.assertHeld();
      console.log(`step ${step}`);
    }
  });
  console.log('done');
} catch (error) {
  // The request rejects with the job's own error, such as an AbortError; its `lockError` is the loss of the lock.
  const loss = error.lockError ?? error;
  if (!(loss instanceof EtcdLockLost)) throw error;
  console.log(`stopped: ${loss.message}`);
  process.exitCode = 1;
} finally {
  await client.close();
}
