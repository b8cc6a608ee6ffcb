import { expect, inject, onTestFinished, test } from 'vitest';
import { startPython } from '../../compat/python.ts';
import { gate } from '../support/gate.ts';
import { gateway } from '../support/gateway.ts';
import { queueOn, raw, untilQueued, useProxy } from '../support/locks.ts';
import { useManager } from '../support/managers.ts';
import type { EtcdProxy, ProxiedRequest } from '../support/proxy.ts';
import { ask, askJson, enqueue, useLockName } from '../support/queues.ts';
import { startOnTerminal } from '../support/terminal.ts';

const isRemoval = ({ method }: ProxiedRequest): boolean => method === 'DELETE';

/** Changes an entry while its removal is in progress. Also returns the queue after the change. */
async function releaseDuring(name: string, modify: (key: string) => Promise<unknown>) {
  const proxy = await useProxy();
  const key = await enqueue(name, 'u1');
  const change = gate();
  const asked = proxy.next(isRemoval, 'arrived');
  proxy.intercept((request) => (isRemoval(request) ? { hold: change.opened } : undefined));
  const releasing = ask(['release', name, '--uuid', 'u1', '--force'], proxy.url);
  await asked;
  await modify(key);
  const left = await queueOn(name);
  change.open();
  return { released: await releasing, left };
}

const keysOn = async (name: string): Promise<string[]> => (await queueOn(name)).map(({ key }) => key);

test('release removes a waiter, and prints the entry first', async () => {
  const name = useLockName();
  const holder = await enqueue(name, 'u1');
  const waiter = await enqueue(name, 'shared:id:pod-1:u2');
  const { code, stdout, stderr } = await ask(['release', name, '--uuid', 'u2']);
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
  const [shown, removed] = stdout.split('\n');
  expect(shown).toMatch(new RegExp(`^${waiter}: shared, pod-1 \\(u2\\), \\d+ s left$`));
  expect(removed).toBe(`${waiter} removed.`);
  expect(await keysOn(name)).toEqual([holder]);
});

test('release finds an entry by its key or the last part of the key', async () => {
  const name = useLockName();
  const holder = await enqueue(name);
  const [second, third] = [await enqueue(name, 'u2'), await enqueue(name, 'u3')];
  expect(await askJson(['release', name, '--key', second])).toMatchObject({ name, key: second, uuid: 'u2' });
  expect(await askJson(['release', name, '--key', third.slice(-20)])).toMatchObject({ key: third, uuid: 'u3' });
  expect(await keysOn(name)).toEqual([holder]);
});

test('release finds an entry by a unique beginning or end of its key or uuid, also as a narrow table shows it', async () => {
  const name = useLockName();
  await enqueue(name, 'u1');
  const uuids = [
    '0123456789abcdef0123456789abcd',
    '9c2e41f22c5c4a7e9b0e3f1f0d5b7a',
    'd00d41f22c5c4a7e9b0e3f1f0d5b01',
    'feed',
  ];
  const keys: string[] = [];
  for (const uuid of uuids) keys.push(await enqueue(name, uuid));
  const selections = [
    ['--uuid', '0123'],
    ['--uuid', '5b7a'],
    ['--uuid', 'd00d41f2…'],
    ['--key', `…${keys[3]?.slice(-8)}`],
  ];
  for (const [at, selection] of selections.entries())
    expect(await askJson(['release', name, ...selection])).toMatchObject({ uuid: uuids[at], key: keys[at] });
});

test('release prefers an entry with exactly the uuid, and lists all entries that a part of it may mean', async () => {
  const name = useLockName();
  await enqueue(name, 'holder');
  const [one, other] = [await enqueue(name, 'abc1'), await enqueue(name, 'abc12')];
  const { code, stdout, stderr } = await ask(['release', name, '--uuid', 'abc']);
  expect({ code, stdout }).toEqual({ code: 1, stdout: '' });
  expect(stderr).toContain('2 entries have the uuid "abc". Select one with its whole --key:');
  for (const key of [one, other]) expect(stderr).toContain(`${key}: exclusive, abc1`);
  expect(await askJson(['release', name, '--uuid', 'abc1'])).toMatchObject({ key: one });
  expect(await keysOn(name)).toHaveLength(2);
});

test('release removes the waiter at a position', async () => {
  const name = useLockName();
  const keys = [await enqueue(name, 'u1'), await enqueue(name, 'u2'), await enqueue(name, 'u3')];
  expect(await askJson(['release', name, '--position', '2'])).toMatchObject({ key: keys[1], uuid: 'u2' });
  expect(await keysOn(name)).toEqual([keys[0], keys[2]]);
  const { code, stderr } = await ask(['release', name, '--position', '3']);
  expect({ code, stderr }).toMatchObject({ code: 1, stderr: expect.stringContaining('has the position 3.') });
});

test('release removes the entry that it has shown, although another one gets its position during the removal', async () => {
  const name = useLockName();
  const proxy = await useProxy();
  const [first] = [await enqueue(name, 'u1'), await enqueue(name, 'u2'), await enqueue(name, 'u3')];
  const change = gate();
  const asked = proxy.next(isRemoval, 'arrived');
  proxy.intercept((request) => (isRemoval(request) ? { hold: change.opened } : undefined));
  const releasing = ask(['release', name, '--position', '2'], proxy.url);
  await asked;
  await raw('DELETE', first);
  change.open();
  expect(await releasing).toMatchObject({ code: 0, stdout: expect.stringContaining('u2') });
  expect(await queueOn(name)).toMatchObject([{ value: 'u3' }]);
});

test('release removes a holder by its position only after a question on the terminal', async () => {
  const name = useLockName();
  const [first, second] = [await enqueue(name, 'u1'), await enqueue(name, 'u2')];
  const { code, stderr } = await ask(['release', name, '--position', '1', '--force']);
  expect({ code, stderr }).toMatchObject({
    code: 1,
    stderr: expect.stringContaining(`--key ${first.slice(-20)} --force`),
  });
  const onTerminal = () =>
    startOnTerminal([process.execPath, 'dist/cli/main.js', 'release', name, '--position', '1', '--force'], {
      ETCD_ENDPOINTS: inject('etcd'),
    });
  const refused = onTerminal();
  await refused.shows(/Remove .*u1.*\? \[y\/N\] $/);
  refused.type('\n');
  expect(await refused.ended).toBe(1);
  expect(await keysOn(name)).toEqual([first, second]);
  const confirmed = onTerminal();
  await confirmed.shows(/\[y\/N\] $/);
  confirmed.type('y\n');
  expect(await confirmed.ended).toBe(0);
  expect(await keysOn(name)).toEqual([second]);
});

test('release of a holder requires --force, and prints the next holder and the consequences', async () => {
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
  expect(refused.stderr).toMatch(new RegExp(`the lock passes to pod-1 at once. ${uuid} continues to work[^]*--force`));
  expect(await queueOn(name)).toHaveLength(2);
  const forced = await ask(['release', name, '--uuid', uuid, '--force']);
  expect(forced).toMatchObject({ code: 0, stderr: expect.stringContaining('may work at the same time') });
  const held = await waiting;
  expect(await keysOn(name)).toEqual([held.key]);
  await held.release();
});

test('release of one of several shared holders requires --force, and prints the other holders', async () => {
  const name = useLockName();
  for (const value of ['shared:u1', 'shared:u2', 'u3']) await enqueue(name, value);
  const { code, stderr } = await ask(['release', name, '--uuid', 'u2']);
  expect(code).toBe(1);
  expect(stderr).toContain('the lock stays with u1. u2 continues to work');
  expect(await queueOn(name)).toHaveLength(3);
});

test('release prints the queue if no entry matches', async () => {
  const name = useLockName();
  const key = await enqueue(name, 'u1');
  const { code, stdout, stderr } = await ask(['release', name, '--uuid', 'u9', '--force']);
  expect({ code, stdout }).toEqual({ code: 1, stdout: '' });
  expect(stderr).toMatch(new RegExp(`no entry in the queue of ${name} has the uuid "u9"[^]*${key}: exclusive, u1, `));
  const { stderr: nobody } = await ask(['release', `${name}/none`, '--key', '1']);
  expect(nobody).toContain('The queue is empty.');
});

test('release removes nothing if two entries have the uuid', async () => {
  const name = useLockName();
  const keys = [await enqueue(name, 'u1'), await enqueue(name, 'u1')];
  const { code, stdout, stderr } = await ask(['release', name, '--uuid', 'u1', '--force']);
  expect({ code, stdout }).toEqual({ code: 1, stdout: '' });
  for (const key of [...keys, 'whole --key']) expect(stderr).toContain(key);
  expect(await keysOn(name)).toEqual(keys);
});

test('release removes an entry without a value', async () => {
  const name = useLockName();
  const key = await enqueue(name, '');
  const { code, stdout } = await ask(['release', name, '--key', key, '--force']);
  expect({ code, stdout }).toEqual({ code: 0, stdout: expect.stringContaining(`${key}: exclusive, (no value), `) });
  expect(await keysOn(name)).toEqual([]);
});

test('release removes an entry on v3 whose key and value are not UTF-8, by the key that inspect shows', async () => {
  const name = useLockName();
  const key = Buffer.concat([Buffer.from(`/_locks/${name}/`), Buffer.of(0xff)]).toString('base64');
  await gateway('/kv/put', { key, value: Buffer.of(0xfe).toString('base64') });
  const { stdout } = await ask(['--api', 'v3', 'inspect', name]);
  expect(stdout).toContain('\\udcff');
  const released = await ask(['--api', 'v3', 'release', name, '--key', '\\udcff', '--force']);
  expect(released).toMatchObject({ code: 0, stdout: expect.stringContaining(' removed.') });
  expect((await gateway('/kv/range', { key })).kvs).toBeUndefined();
});

test.each<[string, (key: string) => Promise<unknown>, RegExp]>([
  [
    'has another value',
    (key) => raw('PUT', key, { value: 'u9' }),
    /was not removed: its value has changed since it was read/,
  ],
  ['is gone', (key) => raw('DELETE', key), /was not removed: it had already been released or had expired/],
])('release fails if the entry %s at the time of removal', async (_, modify, words) => {
  const name = useLockName();
  const { released, left } = await releaseDuring(name, modify);
  expect(released).toMatchObject({ code: 1, stderr: expect.stringMatching(words) });
  expect(await queueOn(name)).toMatchObject(left.map(({ key, value }) => ({ key, value })));
});

test('release succeeds despite a renewal by python-etcd during the removal', async () => {
  const name = useLockName();
  const { released } = await releaseDuring(name, (key) => raw('PUT', key, { value: 'u1', ttl: '600' }));
  expect(released).toMatchObject({ code: 0 });
  expect(await queueOn(name)).toEqual([]);
});

test.each<[string, Parameters<EtcdProxy['intercept']>[0], number, RegExp, number]>([
  ['was carried out', (request) => (isRemoval(request) ? { swallow: true } : undefined), 0, /is gone/, 0],
  ['was not carried out', (request) => (isRemoval(request) ? { refuse: true } : undefined), 1, /still exists/, 1],
])('release reads the entry again if the answer to a removal that %s is lost', async (_, rule, code, words, left) => {
  const name = useLockName();
  const proxy = await useProxy();
  await enqueue(name, 'u1');
  proxy.intercept(rule);
  const released = await ask(['release', name, '--uuid', 'u1', '--force'], proxy.url);
  expect(released).toMatchObject({ code, stderr: expect.stringMatching(words) });
  expect(await queueOn(name)).toHaveLength(left);
});

test.each([
  [['release', 'x'], /no entry selected: use --uuid, --key or --position/],
  [['release', 'x', '--uuid', 'u1', '--key', '1'], /cannot be used with/],
  [['release', 'x', '--position', '1', '--key', '1'], /cannot be used with/],
  [['release', 'x', '--position', '0'], /A position must be an integer from 1, got 0/],
  [['release', 'x', '--position', '1.5'], /A position must be an integer from 1, got 1.5/],
  [['release', 'x', '--key', '/_locks/y/1'], /--key must be a key in \/_locks\/x, .*got "\/_locks\/y\/1"/],
  [['release', 'x', '--key', 'y/1'], /--key must be a key in \/_locks\/x/],
  [['release', 'x', '--uuid', ''], /--uuid must not be empty: select such an entry by --key/],
  [['release', 'x', '--key', ''], /--key must be a key in \/_locks\/x/],
  [['release', 'a//b', '--key', '1'], /lock name must/],
  [
    ['--key', 'package.json', 'release', 'x', '--key', '1'],
    /--cert and --key must be used together, got only package.json/,
  ],
  [
    ['release', 'x', '--key', '1', '--key-file', 'package.json'],
    /--cert and --key must be used together, got only package.json/,
  ],
])('%j is bad usage', async (args, words) => {
  expect(await ask(args)).toMatchObject({ code: 64, stdout: '', stderr: expect.stringMatching(words) });
});
