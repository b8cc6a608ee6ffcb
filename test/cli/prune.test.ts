import { expect, onTestFinished, test } from 'vitest';
import { gate } from '../support/gate.ts';
import { queueOn, raw, untilQueued, useProxy } from '../support/locks.ts';
import { useManager } from '../support/managers.ts';
import type { ProxiedRequest } from '../support/proxy.ts';
import { ask, askJson, enqueue, useLockName } from '../support/queues.ts';

const isRemoval = ({ method }: ProxiedRequest): boolean => method === 'DELETE';

/** Makes the directory of a lock that nobody wants any more. */
const abandon = async (name: string): Promise<void> => {
  await raw('DELETE', await enqueue(name));
};

const exists = async (name: string): Promise<boolean> => (await raw('GET', `/_locks/${name}`)).status === 200;

test('prune removes empty directories, the innermost first, and none with an entry in it', async () => {
  const name = useLockName();
  const empty = ['a/b/c', 'a/b', 'a'].map((part) => `${name}/${part}`);
  await abandon(`${name}/a/b/c`);
  await enqueue(`${name}/d/e`, 'u1');
  await raw('PUT', `/_locks/${name}/f/foo`, { value: 'no entry' });
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

test('prune removes those whose name begins so, and leaves the others', async () => {
  const name = useLockName();
  for (const part of ['x1', 'x2', 'y']) await abandon(`${name}/${part}`);
  expect((await askJson<string[]>(['prune', `${name}/x`])).sort()).toEqual([`${name}/x1`, `${name}/x2`]);
  expect(await exists(`${name}/y`)).toBe(true);
});

test('prune without a prefix leaves the directory of all locks', async () => {
  const prefix = `/_prune-${useLockName()}`;
  onTestFinished(async () => {
    await raw('DELETE', `${prefix}?recursive=true`);
  });
  const { body } = await raw('POST', `${prefix}/x`, { value: 'u1' });
  await raw('DELETE', body.node.key);
  expect(await askJson(['prune', '--lock-prefix', prefix])).toEqual(['x']);
  expect((await raw('GET', prefix)).status).toBe(200);
});

test('prune --dry-run tells what is empty, and removes nothing', async () => {
  const name = useLockName();
  await abandon(`${name}/a`);
  expect(await ask(['prune', name, '--dry-run'])).toMatchObject({ code: 0, stdout: `${name}/a\n${name}\n` });
  expect(await exists(`${name}/a`)).toBe(true);
});

test('prune loses the race with one who queues up: the entry stays, and gets its lock', async () => {
  const name = useLockName();
  await abandon(name);
  const proxy = await useProxy();
  const come = gate();
  const asked = proxy.next(isRemoval, 'arrived');
  proxy.intercept((request) => (isRemoval(request) ? { hold: come.opened } : undefined));
  const pruned = ask(['prune', name], proxy.url);
  await asked;
  const held = await useManager({ ttl: 600 }).acquire(name);
  const waiting = useManager({ ttl: 600 }).acquire(name);
  await untilQueued(name, 2);
  come.open();
  expect(await pruned).toMatchObject({ code: 0, stdout: '', stderr: '' });
  expect((await queueOn(name)).map(({ key }) => key)).toContain(held.key);
  held.assertHeld();
  await held.release();
  await (await waiting).release();
});

test('prune does not count what another one has removed meanwhile', async () => {
  const name = useLockName();
  await abandon(name);
  const proxy = await useProxy();
  const gone = gate();
  const asked = proxy.next(isRemoval, 'arrived');
  proxy.intercept((request) => (isRemoval(request) ? { hold: gone.opened } : undefined));
  const pruned = ask(['prune', name], proxy.url);
  await asked;
  await raw('DELETE', `/_locks/${name}?dir=true`);
  gone.open();
  expect(await pruned).toMatchObject({ code: 0, stdout: '', stderr: '' });
});

test('prune keeps a directory with a hidden lock in it', async () => {
  const name = useLockName();
  await enqueue(`${name}/_hidden`, 'u1');
  expect(await ask(['prune', name])).toMatchObject({ code: 0, stdout: '', stderr: '' });
  expect(await queueOn(`${name}/_hidden`)).toMatchObject([{ value: 'u1' }]);
});
