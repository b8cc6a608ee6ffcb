// A lock that is held until it is released: where the work is no single function. See await-using.mts for the same in
// TypeScript.
import { EtcdClient, LockManager } from 'etcd-v2-lock';

const client = new EtcdClient({ endpoints: process.env.ETCD_ENDPOINTS?.split(',') ?? 'http://127.0.0.1:2379' });
const locks = new LockManager(client);

const held = await locks.acquire('examples/open');
try {
  console.log(`${held.name} is held`);
  // … the work
  held.assertHeld(); // at the end, since a release hides no error, and so tells of no loss by one
} finally {
  const toTheEnd = await held.release(); // never rejects
  console.log(toTheEnd ? 'held to the end' : 'lost meanwhile');
}
await client.close();
