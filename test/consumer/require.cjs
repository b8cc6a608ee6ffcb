// A CommonJS program acquires a lock on the embedded server, and gets errors of the exported classes.
const assert = require('node:assert/strict');
const { EtcdClient, EtcdClientClosed, LockManager } = require('etcd-v2-lock');
const { EmbeddedEtcd } = require('etcd-v2-lock/server');

async function main() {
  const etcd = await EmbeddedEtcd.start();
  const client = new EtcdClient({ endpoints: etcd.url });
  const locks = new LockManager(client);
  assert.equal(await locks.request('report', (held) => typeof held.fencingToken), 'bigint');
  await client.close();
  await assert.rejects(locks.acquire('report'), EtcdClientClosed);
  await etcd.stop();
}

void main();
