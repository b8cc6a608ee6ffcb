// At most two workers run at a time, in all processes together. First come, first served.
import { setTimeout as sleep } from 'node:timers/promises';
import { EtcdClient, LockManager } from 'etcd-v2-lock';

const client = new EtcdClient({ endpoints: process.env.ETCD_ENDPOINTS?.split(',') ?? 'http://127.0.0.1:2379' });
const locks = new LockManager(client);

const encode = (video) =>
  locks.request('examples/encoder', { limit: 2 }, async () => {
    console.log(`${video} begins`);
    await sleep(200);
    console.log(`${video} is done`);
  });

await Promise.all(['a.mov', 'b.mov', 'c.mov', 'd.mov'].map(encode));
await client.close();
