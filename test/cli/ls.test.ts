import { hostname } from 'node:os';
import { expect, inject, onTestFinished, test } from 'vitest';
import { startPython } from '../../compat/python.ts';
import type { EntryJson } from '../../src/cli/queues/show.ts';
import { runCli } from '../support/cli.ts';
import { raw } from '../support/locks.ts';
import { useManager } from '../support/managers.ts';
import { ask, askJson, enqueue, useLockName } from '../support/queues.ts';

interface ListedLock {
  readonly name: string;
  readonly mode: string;
  readonly holders: readonly EntryJson[];
  readonly waiters: number;
}

test('ls lists locks by name, with holders and number of waiters', async () => {
  const name = useLockName();
  await enqueue(`${name}/b`, 'id:pod-1:u1', { ttl: '' });
  await enqueue(`${name}/b`, 'u2');
  const holders = [
    await enqueue(`${name}/a`, 'shared:u3', { ttl: '100' }),
    await enqueue(`${name}/a`, 'shared:u4', { ttl: '500' }),
  ];
  await enqueue(`${name}/a`, 'u5');
  const { code, stdout, stderr } = await ask(['ls', name]);
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
  expect(stdout.split('\n').map((line) => line.split(/ {2,}/))).toEqual([
    ['NAME', 'HOLDER', 'MODE', 'HELD FOR', 'WAITERS', 'WAITING FOR', 'TTL'],
    [`${name}/a`, 'u3 and 1 more', 'shared', 'unknown', '1', 'unknown', expect.stringMatching(/^[45]\d\d$/)],
    [`${name}/b`, 'pod-1', 'exclusive', 'unknown', '1', 'unknown', 'never'],
    [''],
  ]);
  const [a, b] = await askJson<ListedLock[]>(['ls', `${name}/`]);
  expect(a).toMatchObject({ name: `${name}/a`, mode: 'shared', waiters: 1 });
  expect(a?.holders.map(({ key }) => key)).toEqual(holders);
  expect(b).toMatchObject({ waiters: 1, holders: [{ identity: 'pod-1', uuid: 'u1', ttl: null }] });
});

test('changesAgo in the JSON of ls counts the changes to the store since the append, regardless of renewals', async () => {
  const prefix = `/_ls-${useLockName()}`;
  const post = await raw('POST', `${prefix}/x`, { value: 'u1' });
  await raw('PUT', post.body.node.key, { value: 'u1', ttl: '600' });
  onTestFinished(async () => {
    await raw('DELETE', `${prefix}?recursive=true`);
  });
  const [lock] = await askJson<ListedLock[]>(['--lock-prefix', prefix, 'ls']);
  expect(lock).toMatchObject({ name: 'x', holders: [{ uuid: 'u1' }] });
  expect(lock?.holders[0]?.changesAgo).toBeGreaterThanOrEqual(1);
});

test('ls shows a holder by its identity, else by its label, else by its uuid', async () => {
  const name = useLockName();
  const uuid = '0123456789abcdef0123456789abcdef';
  for (const [lock, value] of Object.entries({ a: `id:pod-1:${uuid}@web-1%3A17`, b: `${uuid}@web-1%3A17`, c: uuid }))
    await enqueue(`${name}/${lock}`, value);
  const { stdout } = await ask(['ls', name]);
  expect(stdout.split('\n').map((line) => line.split(/ {2,}/)[1])).toEqual([
    'HOLDER',
    'pod-1',
    'web-1:17',
    uuid,
    undefined,
  ]);
});

test('ls prints holders of python-etcd and of this package, with their parts in JSON', async () => {
  const name = useLockName();
  const python = await startPython(inject('etcd'));
  onTestFinished(() => python.stop());
  const lock = await python.lock(`${name}-python`);
  await lock.hold({ lockTtl: 600 });
  const held = await useManager({ ttl: 600, identity: 'pod-1' }).acquire(`${name}-ours`);
  const { uuid } = await lock.state();
  const label = `${hostname()}:${process.pid}`;
  const [ours, theirs] = await askJson<ListedLock[]>(['ls', `${name}-`]);
  expect(theirs).toMatchObject({
    name: `${name}-python`,
    mode: 'exclusive',
    holders: [{ uuid, identity: null, label: null }],
  });
  expect(ours).toMatchObject({ name: `${name}-ours`, holders: [{ uuid: held.uuid, identity: 'pod-1', label }] });
  await held.release();
  await lock.release();
});

test('ls shows for how long the holder holds at most, and the longest wait that is known', async () => {
  const name = useLockName();
  const uuidFrom = (secondsAgo: number): string =>
    `${(Date.now() - secondsAgo * 1000).toString(16).padStart(12, '0')}7c0a8a1d2b3c4d5e6f70`;
  const times = async (): Promise<(string | undefined)[]> => {
    const [, row = ''] = (await ask(['ls', name])).stdout.split('\n');
    const [, , , held, , waiting] = row.split(/ {2,}/);
    return [held, waiting];
  };
  await enqueue(name, uuidFrom(7200));
  expect(await times()).toEqual(['≤2h', '-']);
  await enqueue(name, 'u2');
  expect(await times()).toEqual(['≤2h', 'unknown']);
  await enqueue(name, uuidFrom(3600));
  await enqueue(name, uuidFrom(60));
  expect(await times()).toEqual(['≤2h', '1h']);
});

test('ls on a narrow terminal leaves out all that it can before it cuts the name of a lock, and --wide cuts nothing', async () => {
  const name = useLockName();
  const lock = `${name}/nightly-report`;
  await enqueue(lock, `id:${'x'.repeat(40)}:u1`);
  const at = async (columns: string, ...flags: string[]): Promise<string> =>
    (await runCli(['ls', name, ...flags], { ETCD_ENDPOINTS: inject('etcd'), COLUMNS: columns })).stdout;
  expect(await at('100')).toMatch(new RegExp(`^${lock} +x+… `, 'm'));
  expect(await at('80')).toMatch(new RegExp(`^${lock} +0 +\\d+$`, 'm'));
  expect(await at('60')).toMatch(new RegExp(`^${lock.slice(0, 40)}\\S*… +0 +\\d+$`, 'm'));
  expect(await at('60', '--wide')).toMatch(new RegExp(`^${lock}  x{40}  `, 'm'));
});

test('ls without held locks prints nothing and succeeds', async () => {
  const name = useLockName();
  const key = await enqueue(name);
  await raw('DELETE', key);
  expect(await ask(['ls', name])).toMatchObject({ code: 0, stdout: '', stderr: '' });
  expect(await askJson(['ls', name])).toEqual([]);
});

test('ls lists hidden locks if the prefix has the hidden part', async () => {
  const name = useLockName();
  await enqueue(`${name}/_hidden/x`);
  expect(await askJson(['ls', `${name}/`])).toEqual([]);
  expect(await askJson(['ls', `${name}/_hidden/`])).toMatchObject([{ name: `${name}/_hidden/x` }]);
});

test('ls escapes control characters as text, and keeps them in JSON', async () => {
  const name = useLockName();
  const evil = '\u001b[2Jwiped\r';
  await enqueue(name, `id:${evil}:u1`);
  expect((await ask(['ls', name])).stdout).toContain(String.raw`\u001b[2Jwiped\u000d`);
  expect(await askJson(['ls', name])).toMatchObject([{ holders: [{ identity: evil }] }]);
});

test('ls rejects an invalid prefix', async () => {
  expect(await ask(['ls', 'a//b'])).toMatchObject({ code: 64, stdout: '' });
});

test('ls reports that etcd cannot be reached', async () => {
  const { code, stdout, stderr } = await ask(['ls'], 'http://127.0.0.1:1');
  expect({ code, stdout }).toEqual({ code: 69, stdout: '' });
  expect(stderr).toMatch(/^etcd-v2-lock: .*127\.0\.0\.1:1/);
});
