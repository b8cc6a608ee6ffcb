// A job of many steps, which ends between two of them when the lock is lost.
import { setTimeout as sleep } from 'node:timers/promises';
import { EtcdClient, EtcdLockLost, LockManager } from 'etcd-v2-lock';

const steps = Number(process.argv[2] ?? 5);
const client = new EtcdClient({ endpoints: process.env.ETCD_ENDPOINTS?.split(',') ?? 'http://127.0.0.1:2379' });
// Not the length of the job: how soon others go on after this process has died.
const locks = new LockManager(client, { ttl: 6 });

try {
  await locks.request('examples/long-job', async (held) => {
    for (let step = 1; step <= steps; step += 1) {
      // What takes a signal ends at once …
      await sleep(100, undefined, { signal: held.signal });
      // … and before what must not happen without the lock, ask. This is right even where the process was stopped just now.
      held.assertHeld();
      console.log(`step ${step}`);
    }
  });
  console.log('done');
} catch (error) {
  // The job's own error comes first (here perhaps an AbortError); it then carries what happened to the lock.
  const loss = error.lockError ?? error;
  if (!(loss instanceof EtcdLockLost)) throw error;
  console.log(`stopped: ${loss.message}`);
  process.exitCode = 1;
} finally {
  await client.close();
}
