import { expect, inject, test } from 'vitest';
import { freshName } from '../support/locks.ts';
import { runScript } from '../support/script.ts';

/**
 * Uses a client in several flows, one after the other, each with a store of its own in an `AsyncLocalStorage`. Prints the flows
 * whose stores are still in memory when all flows have ended, while a hold of no flow lasts.
 */
const SCRIPT = `
  import { AsyncLocalStorage } from 'node:async_hooks';
  import { setTimeout as sleep } from 'node:timers/promises';
  import { setFlagsFromString } from 'node:v8';
  import { runInNewContext } from 'node:vm';
  import { EtcdClient, Lock, LockManager } from 'etcd-v2-lock';
  import { Turns } from './dist/base/time.js';
  setFlagsFromString('--expose-gc');
  const gc = runInNewContext('gc');

  const { ETCD, API, NAME } = process.env;
  const client = new EtcdClient({ endpoints: ETCD, api: API });
  const locks = new LockManager(client, { ttl: 60 });
  const context = new AsyncLocalStorage();
  const stores = new Map();
  const inFlow = (name, work) => {
    const store = { name };
    stores.set(name, new WeakRef(store));
    return context.run(store, work);
  };

  const [kept, other] = [new EtcdClient({ endpoints: ETCD, api: API }), NAME + '-other'];
  const theirs = await new LockManager(kept, { ttl: 60 }).acquire(other);
  // Opens the first connections, creates the lease, and begins to watch for losses on etcd v3.
  await inFlow('holder', () => locks.request(NAME, () => sleep(700)));
  const held = await locks.acquire(NAME);
  // Opens the connections for polls.
  await inFlow('waiter', () => locks.acquire(other, { timeout: 0.3 }).catch(() => {}));
  await inFlow('several', () => locks.request([NAME + '-1', NAME + '-2'], () => {}));
  await inFlow('leader', async () => {
    for await (const term of locks.elect(NAME + '-election').campaign()) break;
  });
  await inFlow('observer', async () => {
    for await (const leader of locks.elect(NAME + '-election').observe()) break;
  });
  await inFlow('least', () => locks.request(NAME + '-least', { holdAtLeast: 600, identity: 'pod-1' }, () => {}));
  const lock = new Lock(client, NAME + '-lock');
  await inFlow('lock', async () => {
    await lock.acquire({ keepAlive: true, lockTtl: 60 });
    await lock.release();
  });
  await inFlow('long loop', async () => {
    const turns = new Turns();
    for (let i = 0; i < 1000; i += 1) await turns.step();
  });
  const alive = () => [...stores].filter(([, store]) => store.deref()).map(([name]) => name);
  // On a busy machine, the last requests of a flow may still be under way. The reads keep the connections open.
  for (let i = 0; i < 100 && alive().length > 0; i += 1) {
    await locks.query(NAME);
    await sleep(100);
    gc();
  }
  console.log(JSON.stringify(alive()));
  await held.release();
  await theirs.release();
  await client.close();
  await kept.close();
`;

test.for(['v2', 'v3', 'both'])('a client on %s keeps nothing of the async contexts of its callers', async (API) => {
  const { code, stdout, stderr } = await runScript(SCRIPT, { ETCD: inject('etcd'), API, NAME: freshName() });
  expect({ code, stdout, stderr }).toEqual({ code: 0, stdout: '[]\n', stderr: '' });
});
