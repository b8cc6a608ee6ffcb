// `import` and `require` load one copy of the package: they share classes, and the local queue of a lock.
import assert from 'node:assert/strict';
import { createRequire } from 'node:module';
import * as imported from 'etcd-v2-lock';
import * as importedServer from 'etcd-v2-lock/server';

const require = createRequire(import.meta.url);
const required = require('etcd-v2-lock');
const requiredServer = require('etcd-v2-lock/server');
assert.deepEqual({ ...imported }, { ...required });
assert.deepEqual({ ...importedServer }, { ...requiredServer });

const client = new imported.EtcdClient({ endpoints: process.env.ETCD_ENDPOINTS });
const name = `one-state-${process.version}-${process.pid}`;
const held = await new imported.LockManager(client).acquire(name);
const locks = new required.LockManager(client);
assert.equal(await locks.acquire(name, { ifAvailable: true }), null);

// A request that waits in the local queue has no entry in etcd.
const waiting = locks.acquire(name, { timeout: 1 });
await assert.rejects(waiting, imported.EtcdLockTimeout);
const next = locks.acquire(name);
const { pending } = await locks.query(name);
assert.deepEqual(pending, []);
assert.equal(await held.release(), true);
assert.equal(await (await next).release(), true);
await client.close();
