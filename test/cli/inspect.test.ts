import { expect, inject, onTestFinished, test } from 'vitest';
import { startPython } from '../../compat/python.ts';
import type { EntryJson } from '../../src/cli/queues/show.ts';
import { runCli } from '../support/cli.ts';
import { raw, untilQueued } from '../support/locks.ts';
import { useManager } from '../support/managers.ts';
import { ask, askJson, enqueue, useLockName } from '../support/queues.ts';

interface Inspected {
  readonly name: string;
  readonly index: number;
  readonly entries: readonly (EntryJson & { readonly position: number; readonly state: string })[];
  readonly ignored: readonly string[];
}

test('inspect shows the queue in order, including entries of python-etcd', async () => {
  const name = useLockName();
  const held = await useManager({ ttl: 600, label: 'web-1:17' }).acquire(name, { mode: 'shared' });
  const python = await startPython(inject('etcd'));
  onTestFinished(() => python.kill());
  const lock = await python.lock(name);
  void lock.acquire({ lockTtl: 300 }).catch(() => {});
  const [, waiter] = await untilQueued(name, 2);
  const last = await enqueue(name, 'shared:id:pod-1:u3', { ttl: '' });
  const { uuid } = await lock.state();
  const { entries, index, ignored } = await askJson<Inspected>(['inspect', name]);
  expect(entries).toMatchObject([
    { position: 1, state: 'holds', mode: 'shared', identity: null, label: 'web-1:17', uuid: held.uuid, key: held.key },
    { position: 2, state: 'waits', mode: 'exclusive', identity: null, label: null, uuid, key: waiter?.key },
    { position: 3, state: 'waits', mode: 'shared', identity: 'pod-1', uuid: 'u3', key: last, ttl: null },
  ]);
  expect(entries[1]?.ttl).toBeGreaterThan(200);
  expect(entries[1]?.ttl).toBeLessThanOrEqual(300);
  expect(entries.map(({ changesAgo }) => changesAgo)).toEqual(entries.map(({ key }) => index - Number(key.slice(-20))));
  expect(ignored).toEqual([]);
  await held.release();
});

test('inspect shows several shared holders', async () => {
  const name = useLockName();
  for (const value of ['shared:u1', 'shared:u2', 'u3', 'shared:u4']) await enqueue(name, value);
  const { entries } = await askJson<Inspected>(['inspect', name]);
  expect(entries.map(({ uuid, state }) => `${uuid} ${state}`)).toEqual([
    'u1 holds',
    'u2 holds',
    'u3 waits',
    'u4 waits',
  ]);
});

test('inspect shows the holders of a semaphore with their limit', async () => {
  const name = useLockName();
  for (const value of ['limit:2:u1', 'limit:2:u2', 'limit:2:u3', 'u4']) await enqueue(name, value);
  const { entries } = await askJson<Inspected>(['inspect', name]);
  expect(entries).toMatchObject([
    { uuid: 'u1', state: 'holds', mode: 'exclusive', limit: 2 },
    { uuid: 'u2', state: 'holds', mode: 'exclusive', limit: 2 },
    { uuid: 'u3', state: 'waits', mode: 'exclusive', limit: 2 },
    { uuid: 'u4', state: 'waits', mode: 'exclusive', limit: null },
  ]);
  expect((await ask(['inspect', name])).stdout).toMatch(/^1 +holds +unknown +limit 2 /m);
});

test('inspect reports entries without TTL, keys that are not entries, and entries without a value', async () => {
  const name = useLockName();
  const key = await enqueue(name, 'u\n1', { ttl: '' });
  await enqueue(name, '');
  await enqueue(`${name}/inside`);
  await raw('PUT', `/_locks/${name}/foo`, { value: 'u' });
  const { code, stdout, stderr } = await ask(['inspect', name]);
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
  const [head, first, second, ...notes] = stdout.split('\n');
  expect(head?.split(/ {2,}/)).toEqual(['#', 'STATE', 'FOR', 'MODE', 'IDENTITY', 'LABEL', 'UUID', 'TTL', 'KEY']);
  expect(first).toMatch(/^1 {2}holds {2}unknown {2}exclusive {2}- +- +u\\u000a1 +never +\/_locks\//);
  expect(second).toMatch(/^2 {2}waits {2}unknown {2}exclusive {2}- +- +\(no value\) +\d+ +\/_locks\//);
  expect(notes).toEqual([
    `${key} never expires: it stays in the queue until it is released.`,
    `/_locks/${name}/foo is not an entry, because its name is not a number: locks ignore it.`,
    '',
  ]);
  expect(await askJson(['inspect', name])).toMatchObject({ ignored: [`/_locks/${name}/foo`] });
});

test('inspect shows for how long an entry waits or holds at most, and that this is unknown for other clients', async () => {
  const name = useLockName();
  const before = Date.now();
  const held = await useManager({ ttl: 600 }).acquire(name);
  await enqueue(name, 'u1');
  const ahead = (Date.now() + 3600_000).toString(16).padStart(12, '0');
  await enqueue(name, `${ahead}7c0a8a1d2b3c4d5e6f70`);
  const { entries } = await askJson<Inspected>(['inspect', name]);
  const [first, ...others] = entries.map(({ queuedAt }) => queuedAt);
  expect(Date.parse(String(first))).toBeGreaterThanOrEqual(before);
  expect(Date.parse(String(first))).toBeLessThanOrEqual(Date.now());
  expect(others).toEqual([null, expect.any(String)]);
  const { stdout } = await ask(['inspect', name]);
  expect(stdout.split('\n').map((line) => line.split(/ {2,}/)[2])).toEqual([
    'FOR',
    expect.stringMatching(/^≤\d+s$/),
    'unknown',
    'unknown',
    undefined,
  ]);
  await held.release();
});

test('each key that inspect prints on 80 columns can be given to release', async () => {
  const name = useLockName();
  const managers = Array.from({ length: 3 }, (_, i) =>
    useManager({ ttl: 600, label: `web-server-${i}.example.com:4711` }),
  );
  const held = await managers[0]?.acquire(name);
  const waiting = managers.slice(1).map((manager) => manager.acquire(name).catch(() => {}));
  await untilQueued(name, 3);
  const { stdout } = await runCli(['inspect', name], { ETCD_ENDPOINTS: inject('etcd'), COLUMNS: '80' });
  const lines = stdout.trimEnd().split('\n');
  for (const line of lines) expect(line.length).toBeLessThanOrEqual(80);
  const keys = lines.slice(1).map((line) => line.split(/ {2,}/).at(-1) ?? '');
  const queue = await askJson<Inspected>(['inspect', name]);
  for (const [at, key] of keys.entries()) {
    const { code, stderr } = await ask(['release', name, '--key', key]);
    // The holder comes first: without --force, it stays.
    expect({ code, stderr }).toMatchObject(
      at === 0 ? { code: 1, stderr: expect.stringContaining('holds') } : { code: 0 },
    );
    expect(queue.entries[at]?.key.endsWith(key)).toBe(true);
  }
  await held?.release();
  await Promise.all(waiting.map((each) => each.then((one) => one?.release())));
});

test('inspect --wide prints whole keys and columns, whatever the width', async () => {
  const name = useLockName();
  const key = await enqueue(name, `id:${'x'.repeat(100)}:u1`);
  const { stdout } = await runCli(['inspect', name, '--wide'], { ETCD_ENDPOINTS: inject('etcd'), COLUMNS: '80' });
  expect(stdout).toContain('x'.repeat(100));
  expect(stdout).toContain(key);
});

test('inspect of an unknown lock shows an empty queue', async () => {
  const name = useLockName();
  expect(await ask(['inspect', name])).toMatchObject({ code: 0, stdout: '', stderr: '' });
  expect(await askJson(['inspect', name])).toMatchObject({ name, entries: [] });
});

test.each(['', 'a//b', '..'])('inspect rejects the name %j', async (name) => {
  const { code, stderr } = await ask(['inspect', name]);
  expect(code).toBe(64);
  expect(stderr).toContain('lock name must');
});
