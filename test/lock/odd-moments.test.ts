import { subscribe, tracingChannel, unsubscribe } from 'node:diagnostics_channel';
import { runInNewContext } from 'node:vm';
import { expect, inject, onTestFinished, test } from 'vitest';
import { EtcdClient, EtcdClientClosed, EtcdLockLost, Fence, LockManager } from '../../src/index.ts';
import { aborted } from '../suites/lock/locks.ts';
import { gate } from '../support/gate.ts';
import { freshName, queueOn, raw, rejection, useClient } from '../support/locks.ts';
import { runScript } from '../support/script.ts';

test('a request of a closed client is refused, also where it would have to wait for another of its process', async () => {
  const client = new EtcdClient({ endpoints: inject('etcd') });
  const locks = new LockManager(client);
  const name = freshName();
  const held = await locks.acquire(name);
  const closed = client.close();
  expect(await rejection(locks.request(name, () => 'ran'))).toBeInstanceOf(EtcdClientClosed);
  expect(await held.release()).toBe(false);
  await closed;
});

test('a request that is aborted in the moment its turn comes asks etcd nothing', async () => {
  const client = useClient();
  const locks = new LockManager(client);
  const name = freshName();
  const held = await locks.acquire(name);
  const abort = new AbortController();
  const waiting = rejection(locks.request(name, { signal: abort.signal }, () => 'ran'));
  let appends = 0;
  const append = client.createInOrder;
  client.createInOrder = (...args) => {
    appends += 1;
    return append.apply(client, args);
  };
  // Told in the same go in which the next one's turn begins.
  const onReleased = () => abort.abort();
  subscribe('tracing:etcd-v2-lock:request:released', onReleased);
  await held.release();
  unsubscribe('tracing:etcd-v2-lock:request:released', onReleased);
  expect(await waiting).toBe(abort.signal.reason);
  expect(appends).toBe(0);
});

test('work that starts its own successor keeps none of the holds before it', async () => {
  const { stdout, stderr } = await runScript(
    `import { setFlagsFromString } from 'node:v8';
     import { runInNewContext } from 'node:vm';
     import { EtcdClient, LockManager } from 'etcd-v2-lock';
     setFlagsFromString('--expose-gc');
     const gc = runInNewContext('gc');
     const client = new EtcdClient({ endpoints: process.env.ETCD });
     const locks = new LockManager(client);
     const refs = [];
     const last = await new Promise((resolve) => {
       const work = (held) => {
         refs.push(new WeakRef(held));
         const next = refs.length < 20 ? () => locks.request(process.env.NAME, work) : () => resolve(setInterval(() => {}, 1e9));
         setImmediate(next);
       };
       locks.request(process.env.NAME, work);
     });
     const alive = () => refs.filter((ref) => ref.deref()).length;
     for (let i = 0; i < 20 && alive() > 2; i += 1) await new Promise((resolve) => setImmediate(resolve)).then(gc);
     console.log(alive() <= 2 ? 'forgotten' : alive() + ' kept');
     clearInterval(last);
     await client.close();`,
    { ETCD: inject('etcd'), NAME: freshName() },
  );
  expect({ stdout, stderr }).toEqual({ stdout: 'forgotten\n', stderr: '' });
});

test('a look that does not wait removes what a dead predecessor left, also where others stand behind that', async () => {
  const name = freshName();
  await raw('POST', `/_locks/${name}`, { value: 'id:node-1:0123', ttl: '60' });
  await raw('POST', `/_locks/${name}`, { value: 'python', ttl: '60' });
  const locks = new LockManager(useClient(), { identity: 'node-1' });
  expect(await locks.request(name, { ifAvailable: true }, (held) => held)).toBeNull();
  expect(await queueOn(name)).toMatchObject([{ value: 'python' }]);
});

test('a subscriber sees the same result of acquire as its caller', async () => {
  const results: unknown[] = [];
  const channel = tracingChannel('etcd-v2-lock:request');
  const onEnd = (trace: unknown) => results.push((trace as { result: unknown }).result);
  channel.asyncEnd.subscribe(onEnd);
  onTestFinished(() => {
    channel.asyncEnd.unsubscribe(onEnd);
  });
  const held = await new LockManager(useClient()).acquire(freshName());
  expect(results).toEqual([held]);
  expect(results[0]).toBe(held);
  await held.release();
});

test.for([null, undefined, '9', 9])('a fence takes no %s for a token', async (answer) => {
  const fence = new Fence(async () => answer as never);
  expect(await rejection(fence.accept('row', 5n))).toBeInstanceOf(TypeError);
});

test('many things at once may listen to the signal of a hold without a warning', async () => {
  const warnings: Error[] = [];
  const onWarning = (warning: Error) => warnings.push(warning);
  process.on('warning', onWarning);
  onTestFinished(() => {
    process.off('warning', onWarning);
  });
  await new LockManager(useClient()).request(freshName(), async ({ signal }) => {
    for (let i = 0; i < 20; i += 1) signal.addEventListener('abort', () => {});
    const { opened, open } = gate();
    process.nextTick(open); // warnings are told in a tick of their own
    await opened;
  });
  expect(warnings).toEqual([]);
});

test("an error of another realm is told of the loss, too: Jest's tests live in one of their own", async () => {
  const error = runInNewContext('new Error("of another realm")');
  const work = new LockManager(useClient()).request(freshName(), { ttl: 1 }, async ({ key, signal }) => {
    await raw('DELETE', key);
    await aborted(signal);
    throw error;
  });
  expect(await rejection(work)).toBe(error);
  expect(error.lockError).toBeInstanceOf(EtcdLockLost);
});

test('another copy of the package in the same process takes no entry of ours for a predecessor’s', async () => {
  const { stdout, stderr } = await runScript(
    `import { cpSync, mkdtempSync, rmSync, symlinkSync } from 'node:fs';
     import { join } from 'node:path';
     import { pathToFileURL } from 'node:url';
     import { EtcdClient, LockManager } from 'etcd-v2-lock';
     const dir = mkdtempSync('node_modules/.copy-');
     try {
       cpSync('dist', join(dir, 'dist'), { recursive: true });
       const copy = await import(pathToFileURL(join(dir, 'dist/index.js')));
       const client = new EtcdClient({ endpoints: process.env.ETCD });
       const other = new copy.EtcdClient({ endpoints: process.env.ETCD });
       const held = await new LockManager(client, { identity: 'pod-1' }).acquire(process.env.NAME);
       const theirs = await new copy.LockManager(other, { identity: 'pod-1' }).acquire(process.env.NAME, { ifAvailable: true });
       console.log(copy.LockManager === LockManager, theirs, await held.release());
       await client.close();
       await other.close();
     } finally {
       rmSync(dir, { recursive: true });
     }`,
    { ETCD: inject('etcd'), NAME: freshName() },
  );
  expect({ stdout, stderr }).toEqual({ stdout: 'false null true\n', stderr: '' });
});
