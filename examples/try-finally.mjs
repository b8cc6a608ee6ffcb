// A lock that is held until release(), for work that is not a single function. See await-using.mts for the same with
// `await using`.
import { EtcdClient, LockManager } from 'etcd-v2-lock';

const client = new EtcdClient({ endpoints: process.env.ETCD_ENDPOINTS?.split(',') ?? 'http://127.0.0.1:2379' });
const locks = new LockManager(client);

const held = await locks.acquire('examples/open');
try {
  console.log(`${held.name} is held`);
  // … the work
  held.assertHeld(); // at the end: throws if the lock was lost, which the release does not
} finally {
  const toTheEnd = await held.release(); // never rejects
  console.log(toTheEnd ? 'held to the end' : 'lost before the release');
}
await client.close();
