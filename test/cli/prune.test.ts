import { expect, onTestFinished, test } from 'vitest';
import { gate } from '../support/gate.ts';
import { queueOn, raw, untilQueued, useProxy } from '../support/locks.ts';
import { first } from '../support/lost-requests.ts';
import { useManager } from '../support/managers.ts';
import type { ProxiedRequest } from '../support/proxy.ts';
import { ask, askJson, enqueue, useLockName } from '../support/queues.ts';

const isRemoval = ({ method }: ProxiedRequest): boolean => method === 'DELETE';

/** Creates the empty directory of an unused lock. */
const abandon = async (name: string): Promise<void> => {
  await raw('DELETE', await enqueue(name));
};

const exists = async (name: string): Promise<boolean> => (await raw('GET', `/_locks/${name}`)).status === 200;

test('prune removes empty directories, innermost first, and keeps directories with entries', async () => {
  const name = useLockName();
  const empty = ['a/b/c', 'a/b', 'a'].map((part) => `${name}/${part}`);
  await abandon(`${name}/a/b/c`);
  await enqueue(`${name}/d/e`, 'u1');
  await raw('PUT', `/_locks/${name}/f/foo`, { value: 'not an entry' });
  const { code, stdout, stderr } = await ask(['prune', `${name}/`]);
  expect({ code, stdout, stderr }).toEqual({ code: 0, stdout: `${empty.join('\n')}\n`, stderr: '' });
  expect(await Promise.all([...empty, `${name}/d/e`, `${name}/f`].map(exists))).toEqual([
    false,
    false,
    false,
    true,
    true,
  ]);
  expect(await queueOn(`${name}/d/e`)).toMatchObject([{ value: 'u1' }]);
  expect(await ask(['prune', `${name}/`])).toMatchObject({ code: 0, stdout: '', stderr: '' });
});

test('prune removes only locks with the given prefix', async () => {
  const name = useLockName();
  for (const part of ['x1', 'x2', 'y']) await abandon(`${name}/${part}`);
  expect((await askJson<string[]>(['prune', `${name}/x`])).sort()).toEqual([`${name}/x1`, `${name}/x2`]);
  expect(await exists(`${name}/y`)).toBe(true);
});

test('prune without a prefix keeps the parent directory of all locks', async () => {
  const prefix = `/_prune-${useLockName()}`;
  onTestFinished(async () => {
    await raw('DELETE', `${prefix}?recursive=true`);
  });
  const { body } = await raw('POST', `${prefix}/x`, { value: 'u1' });
  await raw('DELETE', body.node.key);
  expect(await askJson(['prune', '--lock-prefix', prefix])).toEqual(['x']);
  expect((await raw('GET', prefix)).status).toBe(200);
});

test('prune prints a directory that it has removed although the answer was lost', async () => {
  const [name, proxies] = [useLockName(), [await useProxy(), await useProxy()]];
  await abandon(name);
  const lost = first(1, isRemoval, { swallow: true });
  for (const proxy of proxies) proxy.intercept(lost);
  const endpoints = proxies.map(({ url }) => url).join(',');
  expect(await ask(['prune', name, '--endpoints', endpoints])).toMatchObject({ code: 0, stdout: `${name}\n` });
  expect(await exists(name)).toBe(false);
});

test('prune --dry-run prints empty directories and removes nothing', async () => {
  const name = useLockName();
  await abandon(`${name}/a`);
  expect(await ask(['prune', name, '--dry-run'])).toMatchObject({ code: 0, stdout: `${name}/a\n${name}\n` });
  expect(await exists(`${name}/a`)).toBe(true);
});

test('prune keeps an entry that is added during the removal, and the entry gets the lock', async () => {
  const name = useLockName();
  await abandon(name);
  const proxy = await useProxy();
  const added = gate();
  const asked = proxy.next(isRemoval, 'arrived');
  proxy.intercept((request) => (isRemoval(request) ? { hold: added.opened } : undefined));
  const pruned = ask(['prune', name], proxy.url);
  await asked;
  const held = await useManager({ ttl: 600 }).acquire(name);
  const waiting = useManager({ ttl: 600 }).acquire(name);
  await untilQueued(name, 2);
  added.open();
  expect(await pruned).toMatchObject({ code: 0, stdout: '', stderr: '' });
  expect((await queueOn(name)).map(({ key }) => key)).toContain(held.key);
  held.assertHeld();
  await held.release();
  await (await waiting).release();
});

test('prune does not report a directory that another client removed first', async () => {
  const name = useLockName();
  await abandon(name);
  const proxy = await useProxy();
  const removed = gate();
  const asked = proxy.next(isRemoval, 'arrived');
  proxy.intercept((request) => (isRemoval(request) ? { hold: removed.opened } : undefined));
  const pruned = ask(['prune', name], proxy.url);
  await asked;
  await raw('DELETE', `/_locks/${name}?dir=true`);
  removed.open();
  expect(await pruned).toMatchObject({ code: 0, stdout: '', stderr: '' });
});

test('prune keeps a directory with a hidden lock in it', async () => {
  const name = useLockName();
  await enqueue(`${name}/_hidden`, 'u1');
  expect(await ask(['prune', name])).toMatchObject({ code: 0, stdout: '', stderr: '' });
  expect(await queueOn(`${name}/_hidden`)).toMatchObject([{ value: 'u1' }]);
});
