// Readers hold a lock together, a writer holds it alone. First come, first served: no reader overtakes a waiting writer.
import { setTimeout as sleep } from 'node:timers/promises';
import { EtcdClient, LockManager } from 'etcd-v2-lock';

const client = new EtcdClient({ endpoints: process.env.ETCD_ENDPOINTS?.split(',') ?? 'http://127.0.0.1:2379' });
const locks = new LockManager(client);
let config = 'old';

const read = (who) =>
  locks.request('examples/config', { mode: 'shared' }, async () => {
    console.log(`${who} begins to read`);
    await sleep(100);
    console.log(`${who} has read ${config}`);
  });

// python-etcd's locks count as writers.
const write = (who) =>
  locks.request('examples/config', async () => {
    console.log(`${who} begins to write`);
    await sleep(100);
    config = 'new';
    console.log(`${who} has written ${config}`);
  });

await Promise.all([read('Ada'), read('Bob'), write('Eve'), read('Joe')]);
await client.close();
