import { setTimeout as sleep } from 'node:timers/promises';
import { expect, onTestFinished, test } from 'vitest';
import { Lock } from '../../src/index.ts';
import { useBridge, usePython } from '../../test/server/bridge/use-bridge.ts';
import { startEtcd } from '../../test/support/etcd.ts';
import { base64, gateway } from '../../test/support/gateway.ts';
import { freshName, raw, untilQueued, useClient } from '../../test/support/locks.ts';

/** More events than etcd v2 remembers. */
const EVENTS = 1100;
/** Milliseconds: longer than python-etcd usually needs to notice a release, by far. */
const FOR_EVER = 5000;

/** Starts an etcd of its own: other waiters of python-etcd would not survive so many events. */
async function useEtcd(): Promise<string> {
  const etcd = await startEtcd();
  onTestFinished(() => etcd.stop());
  return etcd.url;
}

/** Appends an entry without a TTL; returns its key. */
const append = async (name: string, url: string): Promise<string> =>
  (await raw('POST', `/_locks/${name}`, { value: 'holder' }, url)).body.node.key;

test('python-etcd does not notice the release of an entry whose last write is more than 1000 events old, and ours does', async () => {
  const url = await useEtcd();
  const names = [freshName(), freshName()] as const;
  const holders = await Promise.all(names.map((name) => append(name, url)));
  for (let i = 0; i < EVENTS; i += 1) await raw('PUT', '/foreign', { value: String(i) }, url);
  const theirs = (await (await usePython(url)).lock(names[0])).acquire({ lockTtl: 600 });
  const ours = new Lock(useClient({ endpoints: url }), names[1]);
  const acquired = ours.acquire({ lockTtl: 600 });
  for (const name of names) await untilQueued(name, 2, url);
  for (const key of holders) await raw('DELETE', key, undefined, url);
  expect(await acquired).toBe(true);
  expect(await Promise.race([theirs.catch(String), sleep(FOR_EVER, 'waits')])).toBe('waits');
  await ours.release();
});

test('at a bridge to etcd v3, python-etcd does notice it', async () => {
  const endpoints = await useEtcd();
  const { url } = await useBridge({ endpoints });
  const name = freshName();
  const holder = await append(name, url);
  for (let i = 0; i < EVENTS; i += 1) await gateway('/kv/put', { key: base64('/foreign'), value: '' }, endpoints);
  const lock = await (await usePython(url)).lock(name);
  const acquired = lock.acquire({ lockTtl: 600 });
  await untilQueued(name, 2, url);
  await raw('DELETE', holder, undefined, url);
  expect(await acquired).toBe(true);
  await lock.release();
});
