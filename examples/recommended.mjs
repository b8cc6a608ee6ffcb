// The recommended use: the lock is held, and renewed, until the callback returns.
import { EtcdClient, LockManager } from 'etcd-v2-lock';

// One client and one manager per process, shared by all its locks.
const client = new EtcdClient({ endpoints: process.env.ETCD_ENDPOINTS?.split(',') ?? 'http://127.0.0.1:2379' });
const locks = new LockManager(client, { ttl: 30, timeout: 60 });

async function writeReport({ fencingToken, signal }) {
  signal.throwIfAborted(); // pass it to `fetch`, timers, your database …: it aborts as soon as the lock is lost
  return `report, written with token ${fencingToken}`;
}

try {
  console.log(await locks.request('examples/report', (held) => writeReport(held)));

  // Without waiting: if somebody else holds the lock, the callback gets null, and no entry is left in the queue.
  await locks.request('examples/report', { ifAvailable: true }, async (held) => {
    if (held === null) return;
    console.log(`nobody else held ${held.name}`);
  });
} finally {
  await client.close();
}
