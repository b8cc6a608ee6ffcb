// Released at the end of the block, whichever way out. TypeScript compiles this for every Node; as it stands here it takes
// Node 24: older ones know no `await using`. See try-finally.mjs for the same without.
import { EtcdClient, LockManager } from 'etcd-v2-lock';

await using client = new EtcdClient({
  endpoints: process.env['ETCD_ENDPOINTS']?.split(',') ?? 'http://127.0.0.1:2379',
});
const locks = new LockManager(client);

{
  await using held = await locks.acquire('examples/open');
  console.log(`${held.name} is held`);
  // … the work
  held.assertHeld(); // at the end, since a release hides no error, and so tells of no loss by one
}

{
  // Null where it is taken: then there is nothing to release.
  await using held = await locks.acquire('examples/open', { ifAvailable: true });
  console.log(held === null ? 'taken' : 'held again');
}
