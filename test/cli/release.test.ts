import { expect, inject, onTestFinished, test } from 'vitest';
import { startPython } from '../../compat/python.ts';
import { gate } from '../support/gate.ts';
import { queueOn, raw, untilQueued, useProxy } from '../support/locks.ts';
import { useManager } from '../support/managers.ts';
import type { EtcdProxy, ProxiedRequest } from '../support/proxy.ts';
import { ask, askJson, enqueue, useLockName } from '../support/queues.ts';

const isRemoval = ({ method }: ProxiedRequest): boolean => method === 'DELETE';

/** Has something happen to an entry while its removal is under way; also resolves to what that left. */
async function releaseWhile(name: string, meanwhile: (key: string) => Promise<unknown>) {
  const proxy = await useProxy();
  const key = await enqueue(name, 'u1');
  const change = gate();
  const asked = proxy.next(isRemoval, 'arrived');
  proxy.intercept((request) => (isRemoval(request) ? { hold: change.opened } : undefined));
  const releasing = ask(['release', name, '--uuid', 'u1', '--force'], proxy.url);
  await asked;
  await meanwhile(key);
  const left = await queueOn(name);
  change.open();
  return { released: await releasing, left };
}

const keysOn = async (name: string): Promise<string[]> => (await queueOn(name)).map(({ key }) => key);

test('release takes one who waits out of the queue, and shows the entry first', async () => {
  const name = useLockName();
  const holder = await enqueue(name, 'u1');
  const waiter = await enqueue(name, 'shared:id:pod-1:u2');
  const { code, stdout, stderr } = await ask(['release', name, '--uuid', 'u2']);
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
  const [shown, removed] = stdout.split('\n');
  expect(shown).toMatch(new RegExp(`^${waiter}: shared, pod-1 \\(u2\\), \\d+ s left$`));
  expect(removed).toBe(`${waiter} is removed.`);
  expect(await keysOn(name)).toEqual([holder]);
});

test('release finds an entry by its key, or by the last part of it', async () => {
  const name = useLockName();
  const holder = await enqueue(name);
  const [second, third] = [await enqueue(name, 'u2'), await enqueue(name, 'u3')];
  expect(await askJson(['release', name, '--key', second])).toMatchObject({ name, key: second, uuid: 'u2' });
  expect(await askJson(['release', name, '--key', third.slice(-20)])).toMatchObject({ key: third, uuid: 'u3' });
  expect(await keysOn(name)).toEqual([holder]);
});

test('release of a holder takes --force, and tells first who gets the lock and what becomes of the holder', async () => {
  const name = useLockName();
  const python = await startPython(inject('etcd'));
  onTestFinished(() => python.kill());
  const lock = await python.lock(name);
  await lock.acquire({ lockTtl: 600 });
  const { uuid, lockKey } = await lock.state();
  const waiting = useManager({ ttl: 600, identity: 'pod-1' }).acquire(name);
  await untilQueued(name, 2);
  const refused = await ask(['release', name, '--uuid', uuid]);
  expect(refused).toMatchObject({ code: 1, stdout: expect.stringContaining(`${lockKey}: exclusive, ${uuid}, `) });
  expect(refused.stderr).toMatch(new RegExp(`pod-1 gets it at once, while ${uuid} does not know[^]*--force`));
  expect(await queueOn(name)).toHaveLength(2);
  const forced = await ask(['release', name, '--uuid', uuid, '--force']);
  expect(forced).toMatchObject({ code: 0, stderr: expect.stringContaining('two jobs at once') });
  const held = await waiting;
  expect(await keysOn(name)).toEqual([held.key]);
  await held.release();
});

test('release of one of those who share the lock takes --force, too, and tells that it stays with the others', async () => {
  const name = useLockName();
  for (const value of ['shared:u1', 'shared:u2', 'u3']) await enqueue(name, value);
  const { code, stderr } = await ask(['release', name, '--uuid', 'u2']);
  expect(code).toBe(1);
  expect(stderr).toContain(`${name} stays with u1, while u2 does not know`);
  expect(await queueOn(name)).toHaveLength(3);
});

test('release tells what there is where nothing is found', async () => {
  const name = useLockName();
  const key = await enqueue(name, 'u1');
  const { code, stdout, stderr } = await ask(['release', name, '--uuid', 'u9', '--force']);
  expect({ code, stdout }).toEqual({ code: 1, stdout: '' });
  expect(stderr).toMatch(new RegExp(`no entry of ${name} has this uuid, "u9"[^]*${key}: exclusive, u1, `));
  const { stderr: nobody } = await ask(['release', `${name}/none`, '--key', '1']);
  expect(nobody).toContain('Its queue is empty.');
});

test('release asks which one where two entries have the uuid', async () => {
  const name = useLockName();
  const keys = [await enqueue(name, 'u1'), await enqueue(name, 'u1')];
  const { code, stdout, stderr } = await ask(['release', name, '--uuid', 'u1', '--force']);
  expect({ code, stdout }).toEqual({ code: 1, stdout: '' });
  for (const key of [...keys, '--key']) expect(stderr).toContain(key);
  expect(await keysOn(name)).toEqual(keys);
});

test('release frees an entry that has lost its value', async () => {
  const name = useLockName();
  const key = await enqueue(name, '');
  const { code, stdout } = await ask(['release', name, '--key', key, '--force']);
  expect({ code, stdout }).toEqual({ code: 0, stdout: expect.stringContaining(`${key}: exclusive, (no value), `) });
  expect(await keysOn(name)).toEqual([]);
});

test.each<[string, (key: string) => Promise<unknown>, RegExp]>([
  ['has another value', (key) => raw('PUT', key, { value: 'u9' }), /was not removed: its value has changed meanwhile/],
  ['is gone', (key) => raw('DELETE', key), /was gone before it could be removed/],
])('release fails where the entry %s by the time it is removed', async (_, meanwhile, words) => {
  const name = useLockName();
  const { released, left } = await releaseWhile(name, meanwhile);
  expect(released).toMatchObject({ code: 1, stderr: expect.stringMatching(words) });
  expect(await queueOn(name)).toMatchObject(left.map(({ key, value }) => ({ key, value })));
});

test('release is none the less for a renewal by python-etcd meanwhile', async () => {
  const name = useLockName();
  const { released } = await releaseWhile(name, (key) => raw('PUT', key, { value: 'u1', ttl: '600' }));
  expect(released).toMatchObject({ code: 0 });
  expect(await queueOn(name)).toEqual([]);
});

test.each<[string, Parameters<EtcdProxy['intercept']>[0], number, RegExp, number]>([
  ['was carried out', (request) => (isRemoval(request) ? { swallow: true } : undefined), 0, /is not there any more/, 0],
  ['was not', (request) => (isRemoval(request) ? { refuse: true } : undefined), 1, /is still there/, 1],
])('release looks again where the answer is lost, and tells so when it %s', async (_, rule, code, words, left) => {
  const name = useLockName();
  const proxy = await useProxy();
  await enqueue(name, 'u1');
  proxy.intercept(rule);
  const released = await ask(['release', name, '--uuid', 'u1', '--force'], proxy.url);
  expect(released).toMatchObject({ code, stderr: expect.stringMatching(words) });
  expect(await queueOn(name)).toHaveLength(left);
});

test.each([
  [['release', 'x'], /which entry\? Tell it by --uuid or --key/],
  [['release', 'x', '--uuid', 'u1', '--key', '1'], /cannot be used with/],
  [['release', 'x', '--key', '/_locks/y/1'], /--key must be a key in \/_locks\/x, .*got "\/_locks\/y\/1"/],
  [['release', 'x', '--key', 'y/1'], /--key must be a key in \/_locks\/x/],
  [['release', 'x', '--key', ''], /--key must be a key in \/_locks\/x/],
  [['release', 'a//b', '--key', '1'], /lock name must/],
  [['--key', 'package.json', 'release', 'x', '--key', '1'], /--cert and --key go together, got only package.json/],
  [['release', 'x', '--key', '1', '--key-file', 'package.json'], /--cert and --key go together, got only package.json/],
])('%j is bad usage', async (args, words) => {
  expect(await ask(args)).toMatchObject({ code: 64, stdout: '', stderr: expect.stringMatching(words) });
});
