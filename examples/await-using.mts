// Every exit path of the block releases the lock. TypeScript compiles this file for every supported version of Node. Without
// compilation, `await using` needs Node 24; see try-finally.mjs for the same without it.
import { EtcdClient, LockManager } from 'etcd-v2-lock';

await using client = new EtcdClient({
  endpoints: process.env['ETCD_ENDPOINTS']?.split(',') ?? 'http://127.0.0.1:2379',
});
const locks = new LockManager(client);

{
  await using held = await locks.acquire('examples/open');
  console.log(`${held.name} is held`);
  // … the work
  held.assertHeld(); // at the end: throws if the lock was lost, which the release does not
}

{
  // Null if somebody else holds the lock: then there is nothing to release.
  await using held = await locks.acquire('examples/open', { ifAvailable: true });
  console.log(held === null ? 'taken' : 'held again');
}
