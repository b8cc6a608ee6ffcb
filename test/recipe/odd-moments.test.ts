import { tracingChannel } from 'node:diagnostics_channel';
import { runInNewContext } from 'node:vm';
import { expect, inject, onTestFinished, test } from 'vitest';
import { EtcdLockLost, LockManager, type RequestTrace } from '../../src/index.ts';
import { aborted } from '../suites/lock/locks.ts';
import { debugOutput } from '../support/debug-output.ts';
import { freshName, queueOn, raw, rejection, useClient, useProxy } from '../support/locks.ts';
import { runScript } from '../support/script.ts';

test('a non-blocking request evicts the entry that a dead predecessor left, even if others wait behind that entry', async () => {
  const name = freshName();
  await raw('POST', `/_locks/${name}`, { value: 'id:node-1:0123', ttl: '60' });
  await raw('POST', `/_locks/${name}`, { value: 'python', ttl: '60' });
  const locks = new LockManager(useClient(), { identity: 'node-1' });
  expect(await locks.request(name, { ifAvailable: true }, (held) => held)).toBeNull();
  expect(await queueOn(name)).toMatchObject([{ value: 'python' }]);
});

// The reason is logged while the lease ends. An error there would keep the entry in the queue, and its renewals going.
test('an abort reason that JSON cannot show ends a wait while DEBUG is set, and the caller gets that reason', async () => {
  const name = freshName();
  const locks = new LockManager(useClient());
  const proxy = await useProxy();
  const waiter = new LockManager(useClient({ endpoints: proxy.url }));
  const { lines } = await debugOutput(async () => {
    const held = await locks.acquire(name);
    const caller = new AbortController();
    const reason = { token: held.fencingToken };
    const polls = proxy.next(({ query }) => query.has('wait'), 'headers');
    const waiting = rejection(waiter.acquire(name, { signal: caller.signal }));
    await polls;
    caller.abort(reason);
    expect(await waiting).toBe(reason);
    expect(await queueOn(name)).toHaveLength(1);
    await held.release();
  });
  expect(lines.join('\n')).toContain('is lost: [object Object]');
});

test('a trace subscriber gets the same object as the caller of acquire', async () => {
  const results: unknown[] = [];
  const channel = tracingChannel('etcd-v2-lock:request');
  const name = freshName();
  const onEnd = (message: unknown) => {
    const trace = message as RequestTrace;
    if (trace.name === name) results.push(trace.result);
  };
  channel.asyncEnd.subscribe(onEnd);
  onTestFinished(() => {
    channel.asyncEnd.unsubscribe(onEnd);
  });
  const held = await new LockManager(useClient()).acquire(name);
  expect(results).toEqual([held]);
  expect(results[0]).toBe(held);
  await held.release();
});

test('an error of another realm, such as that of a Jest test, also gets the loss as `lockError`', async () => {
  const error = runInNewContext('new Error("of another realm")');
  const work = new LockManager(useClient()).request(freshName(), { ttl: 1 }, async ({ key, signal }) => {
    await raw('DELETE', key);
    await aborted(signal);
    throw error;
  });
  expect(await rejection(work)).toBe(error);
  expect(error.lockError).toBeInstanceOf(EtcdLockLost);
});

test('a second copy of the package in the same process does not treat our entry as a leftover', async () => {
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
