import { expect, inject, onTestFinished, test } from 'vitest';
import { formatHandle, parseHandle } from '../../../src/cli/handles/handle.ts';
import type { EtcdApi } from '../../../src/index.ts';
import { EtcdClient, LockManager } from '../../../src/index.ts';
import { lastPart } from '../../../src/recipe/survey.ts';
import { SINGLE_USE_KEYS } from '../../../src/v3/locks/entry-keys.ts';
import { keysOf, ttlsOf, untilKeys, useEtcdClient } from '../../support/both.ts';
import { startCli } from '../../support/cli.ts';
import { base64, entriesBelow, gateway } from '../../support/gateway.ts';
import { entriesIn, raw, recentTtl, untilQueued, useProxy } from '../../support/locks.ts';
import { ask, askJson, enqueue, useLockName } from '../../support/queues.ts';

const APIS: readonly EtcdApi[] = ['v2', 'v3', 'both'];

/** Runs `acquire`, and returns the handle that it prints. */
async function acquired(api: EtcdApi, name: string, ...flags: readonly string[]): Promise<string> {
  const { code, stdout, stderr } = await ask(['--api', api, 'acquire', name, '--ttl', '600', ...flags]);
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
  expect(stdout).toMatch(/^\S+\n$/);
  return stdout.trim();
}

/** Cuts the TTLs of a lock's entries short, as if much time had passed. */
async function age(name: string): Promise<void> {
  for (const { key, value } of await entriesIn(`/_locks/${name}`)) await raw('PUT', key, { value, ttl: '60' });
  for (const { key, value } of await entriesBelow(`/_locks/${name}/`)) {
    const { ID: lease } = await gateway('/lease/grant', { TTL: '60' });
    await gateway('/kv/put', { key: base64(key), value: base64(value), lease });
  }
}

const noKeys = { v2: [], v3: [] };

test.each(APIS)(
  'acquire holds a lock on %s after it has ended, and release in another process ends the hold',
  async (api) => {
    const name = useLockName();
    const handle = await acquired(api, name);
    expect(await ttlsOf(name)).toEqual(api === 'both' ? [recentTtl(600), recentTtl(600)] : [recentTtl(600)]);
    const other = await ask(['--api', api, 'acquire', name, '--ttl', '600', '--if-available']);
    expect(other).toMatchObject({ code: 1, stdout: '' });
    expect(await ask(['release', '--handle', handle])).toMatchObject({
      code: 0,
      stdout: expect.stringMatching(api === 'both' ? /^\S+ removed\.\n\S+ removed\.\n$/ : /^\S+ removed\.\n$/),
      stderr: '',
    });
    expect(await keysOf(name)).toEqual(noKeys);
    await ask(['release', '--handle', await acquired(api, name)]);
  },
);

test.each(APIS)('renew sets the whole TTL of a hold on %s again', async (api) => {
  const name = useLockName();
  const handle = await acquired(api, name);
  await age(name);
  const short = expect.toSatisfy((ttl: number) => ttl <= 60);
  expect(await ttlsOf(name)).toEqual(api === 'both' ? [short, short] : [short]);
  expect(await ask(['renew', '--handle', handle])).toMatchObject({ code: 0, stderr: '' });
  expect(await ttlsOf(name)).toEqual(api === 'both' ? [recentTtl(600), recentTtl(600)] : [recentTtl(600)]);
  await ask(['release', '--handle', handle]);
});

test.each(APIS)('a handle of an entry on %s that is gone releases and renews nothing', async (api) => {
  const name = useLockName();
  const handle = await acquired(api, name);
  await ask(['release', '--handle', handle]);
  const next = await acquired(api, name);
  const keys = await keysOf(name);
  expect(await ask(['release', '--handle', handle])).toMatchObject({
    code: 1,
    stdout: '',
    stderr: expect.stringContaining('was not held on v'),
  });
  expect(await ask(['renew', '--handle', handle])).toMatchObject({
    code: 75,
    stdout: '',
    stderr: expect.stringContaining('its entry has expired, or was removed'),
  });
  expect(await keysOf(name)).toEqual(keys);
  await ask(['release', '--handle', next]);
});

test.each(APIS)('a hold on %s that nobody renews expires, which release and renew say', async (api) => {
  const name = useLockName();
  const handle = await acquired(api, name, '--ttl', '2');
  await untilKeys(name, 0, 0);
  expect(await ask(['renew', '--handle', handle])).toMatchObject({ code: 75, stdout: '' });
  expect(await ask(['release', '--handle', handle])).toMatchObject({ code: 1, stdout: '' });
});

test.each(['v3', 'both'] as const)(
  'renew and release find the entry of a process that had many entries on %s before, as after a wait that queued up again and again',
  async (api) => {
    const name = useLockName();
    const client = useEtcdClient({ api });
    const locks = new LockManager(client);
    // As "acquire" does, but each of these entries would take a wait that loses its entry.
    for (let i = 0; i < SINGLE_USE_KEYS; i += 1) await locks.request(name, () => undefined);
    const { uuid, key, fencingToken, release } = await locks.acquire(name, { holdAtLeast: 600 });
    await release();
    const { clusterId = '', lockPrefix } = client;
    const handle = formatHandle({ api, ttl: 600, fencingToken, clusterId, uuid, lockPrefix, name, id: lastPart(key) });
    await age(name);
    expect(await ask(['renew', '--handle', handle])).toMatchObject({ code: 0, stderr: '' });
    expect(await ttlsOf(name)).toEqual(api === 'both' ? [recentTtl(600), recentTtl(600)] : [recentTtl(600)]);
    expect(await ask(['release', '--handle', handle])).toMatchObject({ code: 0, stderr: '' });
    expect(await keysOf(name)).toEqual(noKeys);
  },
);

test.each(['v2', 'v3'] as const)('a handle on %s does not touch an entry of another client at its key', async (api) => {
  const name = useLockName();
  const handle = await acquired(api, name);
  const { id } = parseHandle(handle);
  const key = `/_locks/${name}/${id}`;
  if (api === 'v2') await raw('PUT', key, { value: 'another', ttl: '600' });
  else await gateway('/kv/put', { key: base64(key), value: base64('another') });
  expect(await ask(['release', '--handle', handle])).toMatchObject({ code: 1 });
  expect(await ask(['renew', '--handle', handle])).toMatchObject({ code: 75 });
  const values = api === 'v2' ? await entriesIn(`/_locks/${name}`) : await entriesBelow(`/_locks/${name}/`);
  expect(values).toMatchObject([{ value: 'another' }]);
  await gateway('/kv/deleterange', { key: base64(key) });
});

test('acquire prints the fencing token with the handle, as JSON too, and later holds have greater ones', async () => {
  const name = useLockName();
  const first = parseHandle(await acquired('v2', name)).fencingToken;
  const { entries } = await askJson<{ entries: { key: string; label: string }[] }>(['inspect', name]);
  expect(entries).toMatchObject([{ label: expect.not.stringContaining(':') }]);
  await raw('DELETE', entries[0]?.key ?? '');
  const json = await askJson<{ handle: string; fencingToken: string }>(['acquire', name, '--ttl', '600', '--shared']);
  expect(json).toMatchObject({ name, mode: 'shared', ttl: 600, limit: null, fencingTokens: { v2: json.fencingToken } });
  expect(BigInt(json.fencingToken)).toBeGreaterThan(first);
  expect(parseHandle(json.handle).fencingToken).toBe(BigInt(json.fencingToken));
  expect(await askJson(['renew', '--handle', json.handle])).toMatchObject({ handle: json.handle });
  expect(await askJson(['release', '--handle', json.handle])).toMatchObject({ name, mode: 'shared' });
});

test('acquire waits for its turn, and a signal during the wait removes the entry, whose TTL is short', async () => {
  const name = useLockName();
  const key = await enqueue(name, 'holder');
  const waiting = startCli(['acquire', name, '--ttl', '3600'], { ETCD_ENDPOINTS: inject('etcd') });
  const [, own] = await untilQueued(name, 2);
  expect(own?.ttl).toEqual(recentTtl(30));
  waiting.process.kill('SIGTERM');
  expect(await waiting.result).toMatchObject({ code: 143, stdout: '', stderr: expect.not.stringContaining('abort') });
  await untilQueued(name, 1);
  const timedOut = await ask(['acquire', name, '--ttl', '600', '--timeout', '0.5', '-E', '9']);
  expect(timedOut).toMatchObject({ code: 9, stdout: '', stderr: expect.stringContaining('holder') });
  await raw('DELETE', key);
});

test('acquire prints no handle, and removes its entry, if the TTL could not be set', async () => {
  const name = useLockName();
  const proxy = await useProxy();
  proxy.intercept(({ method, body }) => (method === 'PUT' && /ttl=600/.test(body) ? { refuse: true } : undefined));
  const failed = await ask(['acquire', name, '--ttl', '600'], proxy.url);
  expect(failed).toMatchObject({ code: 69, stdout: '', stderr: expect.stringContaining('its TTL could not be set') });
  await untilQueued(name, 0);
});

test('renew reports a hold that another entry has come before', async () => {
  const name = useLockName();
  const handle = await acquired('v2', name);
  const first = `/_locks/${name}/${'1'.padStart(20, '0')}`;
  await raw('PUT', first, { value: 'python', ttl: '600' });
  expect(await ask(['renew', '--handle', handle])).toMatchObject({
    code: 75,
    stderr: expect.stringContaining('another entry is before it'),
  });
  await ask(['release', '--handle', handle]);
  await untilQueued(name, 1);
});

test('a handle has the prefix and the cluster, which flags and endpoints must fit', async () => {
  const name = useLockName();
  const handle = await acquired('v3', name);
  for (const [flags, words] of [
    [['--api', 'v2'], '--api v2 does not fit the handle, which is of --api v3'],
    [['--lock-prefix', '/others'], '--lock-prefix /others does not fit the handle, which has /_locks'],
  ] as const)
    expect(await ask(['release', '--handle', handle, ...flags])).toMatchObject({
      code: 64,
      stderr: expect.stringContaining(words),
    });
  const elsewhere = formatHandle({ ...parseHandle(handle), clusterId: 'abc' });
  for (const command of ['release', 'renew'])
    expect(await ask([command, '--handle', elsewhere])).toMatchObject({
      code: 125,
      stderr: expect.stringContaining('expected cluster abc'),
    });
  expect(await ask(['release', '--handle', handle])).toMatchObject({ code: 0 });
});

test.each([
  '',
  'v2',
  'v4:600:1:abc:0123456789abcdef0123456789abcdef:/_locks:name:1',
  'v2:600:1:abc:0123456789abcdef0123456789abcdef:/_locks:name',
  'v2:600:1:abc:0123456789abcdef0123456789abcdef:/_locks:%zz:1',
  'v2:600:1:abc:0123456789abcdef:/_locks:name:1',
])('%j is no handle, which release and renew say before any request', async (text) => {
  for (const command of ['release', 'renew'])
    expect(await ask([command, '--handle', text], 'http://127.0.0.1:1')).toMatchObject({
      code: 64,
      stderr: expect.stringContaining(
        `--handle must be a handle that "acquire" has printed, got ${JSON.stringify(text)}`,
      ),
    });
});

test.each([
  [['release'], "missing required argument 'name'"],
  [['release', 'name', '--handle', 'v2'], '--handle has the name of the lock'],
  [['release', '--handle', 'v2', '--force'], "option '--handle <handle>' cannot be used with option '--force'"],
  [['renew'], "required option '--handle <handle>' not specified"],
  [['acquire', 'name'], "required option '--ttl <seconds>' not specified"],
  [['acquire', 'name', '--ttl', '0'], 'ttl must be an integer'],
  [['acquire', 'name', '--ttl', '1.5'], 'ttl must be an integer'],
])('%j is refused', async (args, words) => {
  expect(await ask(args, 'http://127.0.0.1:1')).toMatchObject({ code: 64, stderr: expect.stringContaining(words) });
});

test('a hold of acquire blocks other clients until it is released', async () => {
  const client = new EtcdClient({ endpoints: inject('etcd') });
  onTestFinished(() => client.close());
  const name = useLockName();
  const handle = await acquired('v2', name);
  const waiting = new LockManager(client).acquire(name);
  await untilQueued(name, 2);
  await ask(['release', '--handle', handle]);
  await (await waiting).release();
});
