// An ES module acquires a lock with named imports, and the package has no default export.
import assert from 'node:assert/strict';
import { EtcdClient, Lock } from 'etcd-v2-lock';
import { EmbeddedEtcd } from 'etcd-v2-lock/server';

assert.equal((await import('etcd-v2-lock')).default, undefined);
const etcd = await EmbeddedEtcd.start();
const client = new EtcdClient({ endpoints: etcd.url });
const lock = new Lock(client, 'report');
assert.equal(await lock.acquire(), true);
await lock.release();
await client.close();
await etcd.stop();
