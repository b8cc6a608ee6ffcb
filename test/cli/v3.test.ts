import { expect, inject, onTestFinished, test } from 'vitest';
import { EtcdClient, EtcdLockLost, LockManager } from '../../src/index.ts';
import { aborted } from '../suites/lock/locks.ts';
import { runCli } from '../support/cli.ts';
import { base64, entriesBelow, gateway } from '../support/gateway.ts';
import { freshName, queueOn, useProxy } from '../support/locks.ts';
import { first } from '../support/lost-requests.ts';
import type { ProxiedRequest } from '../support/proxy.ts';
import { ask, askJson, startWatch } from '../support/queues.ts';

interface Shown {
  readonly key: string;
  readonly uuid: string;
  readonly ttl: number | null;
  readonly state?: string;
}

function useLocks(): LockManager {
  const client = new EtcdClient({ endpoints: inject('etcd'), api: 'v3' });
  onTestFinished(() => client.close());
  return new LockManager(client, { ttl: 30, label: '' });
}

/** Adds an entry as Go's Mutex does, which never expires; the end of the test removes it. Resolves to its key. */
async function enqueue(name: string, value = ''): Promise<string> {
  const key = `/_locks/${name}/${freshName()}`;
  await gateway('/kv/put', { key: base64(key), value: base64(value) });
  onTestFinished(() => gateway('/kv/deleterange', { key: base64(key) }).then(() => {}));
  return key;
}

const V3 = ['--api', 'v3'] as const;

test('ls and inspect show the locks of etcd v3, those of Go among them, and no others', async () => {
  const name = freshName();
  const held = await useLocks().acquire(`${name}/a`, { identity: 'pod-1' });
  const key = await enqueue(`${name}/a`);
  const [lock, ...others] = await askJson<{ name: string; waiters: number; holders: Shown[] }[]>([...V3, 'ls', name]);
  expect(others).toEqual([]);
  expect(lock).toMatchObject({ name: `${name}/a`, waiters: 1, holders: [{ key: held.key, identity: 'pod-1' }] });
  expect(lock?.holders[0]?.ttl).toBeGreaterThan(20);
  expect(await askJson(['ls', name])).toEqual([]);
  const { entries } = await askJson<{ entries: Shown[] }>([...V3, 'inspect', `${name}/a`]);
  expect(entries).toMatchObject([
    { position: 1, state: 'holds', key: held.key },
    { position: 2, state: 'waits', key, uuid: '', ttl: null, mode: 'exclusive', changesAgo: expect.any(Number) },
  ]);
  await held.release();
});

test('inspect shows an empty queue, and the queue of a name within another name is not part of it', async () => {
  const name = freshName();
  await enqueue(`${name}/within`);
  const { code, stdout, stderr } = await ask([...V3, 'inspect', name]);
  expect({ code, stdout }).toEqual({ code: 0, stdout: '' });
  expect(stderr).toBe('');
  expect(await askJson([...V3, 'inspect', name])).toMatchObject({ entries: [], ignored: [] });
});

test('release accepts a key as inspect shows it, also with an empty prefix', async () => {
  const client = new EtcdClient({ endpoints: inject('etcd'), api: 'v3', lockPrefix: '' });
  onTestFinished(() => client.close());
  const name = freshName();
  const held = await new LockManager(client, { ttl: 30 }).acquire(name);
  const { code, stderr } = await ask([...V3, '--lock-prefix', '', 'release', name, '--key', held.key, '--force']);
  expect(code).toBe(0);
  expect(stderr).toContain(`${held.key} holds ${name}`);
  expect(await aborted(held.signal)).toBeInstanceOf(EtcdLockLost);
  expect(await held.release()).toBe(false);
});

test('watch prints what happens to a queue of etcd v3', async () => {
  const name = freshName();
  const locks = useLocks();
  const first = await locks.acquire(name);
  const watch = startWatch([...V3, name, '--json']);
  await watch.lines(1);
  const go = await enqueue(name);
  await watch.lines(2);
  await first.release();
  await watch.lines(4);
  await gateway('/kv/put', { key: base64(go), value: base64('other') });
  await watch.lines(5);
  await gateway('/kv/deleterange', { key: base64(go) });
  const lines = (await watch.lines(6)).map((line) => JSON.parse(line) as { event: string; entry: Shown });
  expect(lines.map(({ event, entry }) => `${event} ${entry.key}`)).toEqual([
    `holds ${first.key}`,
    `queued ${go}`,
    `released ${first.key}`,
    `acquired ${go}`,
    `changed ${go}`,
    `released ${go}`,
  ]);
  expect(await watch.end('SIGINT')).toMatchObject({ code: 130, stderr: '' });
});

test('watch reports all entries that end with one lease', async () => {
  const name = freshName();
  const { ID } = await gateway('/lease/grant', { TTL: '60' });
  for (const last of ['a', 'b'])
    await gateway('/kv/put', { key: base64(`/_locks/${name}/${last}`), value: base64(last), lease: ID });
  const watch = startWatch([...V3, name, '--json']);
  await watch.lines(2);
  await gateway('/lease/revoke', { ID });
  const events = (await watch.lines(5)).slice(2).map((line) => (JSON.parse(line) as { event: string }).event);
  expect(events.toSorted()).toEqual(['acquired', 'released', 'released']);
});

test('release does not deny a removal on etcd v3 that was carried out, if its answer was lost and it was sent again', async () => {
  const [name, proxy] = [freshName(), await useProxy()];
  const held = await useLocks().acquire(name);
  const isRemoval = ({ body }: ProxiedRequest): boolean => body.includes('request_delete_range');
  proxy.intercept(first(1, isRemoval, { swallow: true }));
  const released = await ask([...V3, 'release', name, '--key', held.key, '--force'], proxy.url);
  expect(released).toMatchObject({
    code: 0,
    stderr: expect.stringMatching(/is gone\. The answer to the removal was lost/),
  });
  expect(await aborted(held.signal)).toBeInstanceOf(EtcdLockLost);
  expect(await held.release()).toBe(false);
});

test('release removes a waiter of etcd v3, and a holder only with --force', async () => {
  const name = freshName();
  const holder = await enqueue(name, 'holder');
  const waiter = await enqueue(name, 'waiter');
  expect(await ask([...V3, 'release', name, '--uuid', 'waiter'])).toMatchObject({
    code: 0,
    stdout: expect.stringContaining(`${waiter} removed.`),
  });
  const last = holder.slice(holder.lastIndexOf('/') + 1);
  expect(await ask([...V3, 'release', name, '--key', last])).toMatchObject({ code: 1 });
  expect(await entriesBelow(`/_locks/${name}/`)).toHaveLength(1);
  expect(await ask([...V3, 'release', name, '--key', last, '--force'])).toMatchObject({ code: 0 });
  expect(await entriesBelow(`/_locks/${name}/`)).toEqual([]);
});

test('run holds the lock on etcd v3 while its command runs, and leaves nothing in either store', async () => {
  const name = freshName();
  const command = ['sh', '-c', 'echo $ETCD_LOCK_KEY $ETCD_LOCK_TOKEN'];
  const { code, stdout } = await ask([...V3, 'run', name, '--', ...command]);
  expect(code).toBe(0);
  const [key, token] = stdout.trim().split(' ');
  expect(key).toMatch(new RegExp(`^/_locks/${name}/`));
  expect(BigInt(token ?? '')).toBeGreaterThan(0n);
  expect(await entriesBelow(`/_locks/${name}/`)).toEqual([]);
  expect(await queueOn(name)).toEqual([]);
});

test('run does not wait with --if-available while a Mutex of Go holds the lock, and leaves no key', async () => {
  const name = freshName();
  await enqueue(name);
  expect(await ask([...V3, 'run', name, '--if-available', '--', 'true'])).toMatchObject({ code: 1 });
  expect(await entriesBelow(`/_locks/${name}/`)).toHaveLength(1);
});

test('prune removes nothing from etcd v3, where an unused lock leaves nothing', async () => {
  const name = freshName();
  await enqueue(name);
  expect(await askJson([...V3, 'prune', name])).toEqual([]);
  expect(await entriesBelow(`/_locks/${name}/`)).toHaveLength(1);
});

test('ETCD_LOCK_API chooses the API, and --api takes precedence', async () => {
  const name = freshName();
  const key = await enqueue(name);
  const env = { ETCD_ENDPOINTS: inject('etcd'), ETCD_LOCK_API: 'v3' };
  expect((await runCli(['inspect', name], env)).stdout).toContain(key);
  expect((await runCli(['inspect', name, '--api', 'v2'], env)).stdout).not.toContain(key);
});

test.each(['2', '3'])("etcdctl's own variable does not choose the API: ETCDCTL_API=%s", async (version) => {
  const name = freshName();
  const key = await enqueue(name);
  const env = { ETCD_ENDPOINTS: inject('etcd'), ETCDCTL_API: version };
  expect((await runCli(['inspect', name], env)).stdout).not.toContain(key);
});

test.each([
  [['--api', '3', 'ls'], 'api must be "v2", "v3" or "both", got "3"'],
  [['ls', '--api', ''], 'api must be "v2", "v3" or "both", got ""'],
])('%j is refused before any request', async (args, message) => {
  const { code, stderr } = await runCli(args, { ETCD_ENDPOINTS: 'http://127.0.0.1:1' });
  expect(code).toBe(64);
  expect(stderr).toContain(message);
});
