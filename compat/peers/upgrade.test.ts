// What docs/moving.md says about etcd 3.6 on the data of etcd 3.5. test/faults/moving/upgrade.test.ts upgrades a cluster.
import { describe, expect, onTestFinished, test } from 'vitest';
import { runCli } from '../../test/support/cli.ts';
import { type EtcdMember, startEtcd } from '../../test/support/etcd.ts';
import { EtcdDied } from '../../test/support/etcd-member.ts';
import { base64, gateway } from '../../test/support/gateway.ts';
import { until } from '../../test/support/until.ts';
import { built } from './built.ts';
import { checkV2Store, NOTHING_FOUND } from './check-v2-store.ts';

const IN_THE_LOG = 'Error: detected custom v2 content in WAL records';
const IN_THE_SNAPSHOT = 'Error: detected custom content in v2store';

const put = (url: string): Promise<object> => gateway('/kv/put', { key: base64('a'), value: '' }, url);

/**
 * Starts etcd 3.5 with the v2 API. Does not wait until it is ready as other tests do: that check is a `GET /health`, which this etcd
 * writes to its log.
 */
async function useEtcd35(): Promise<EtcdMember> {
  const etcd = await startEtcd({ program: built('3.5') });
  onTestFinished(() => etcd.stop());
  await etcd.restart({ wait: false, args: ['--enable-v2'] });
  await until(
    () =>
      put(etcd.url).then(
        () => true,
        () => false,
      ),
    Boolean,
  );
  return etcd;
}

/** Starts etcd 3.5 without the v2 API, and makes it write a snapshot. */
async function forceSnapshot(etcd: EtcdMember): Promise<void> {
  await etcd.restart({ without: ['--enable-v2'], args: ['--snapshot-count=5'] });
  for (let count = 0; count < 12; count += 1) await put(etcd.url);
}

/** Starts etcd 3.6 in its place. Resolves to what etcdutl found before, and to the end of the log if etcd 3.6 does not start. */
async function upgrade(etcd: EtcdMember): Promise<{ found: string; died: string | undefined }> {
  let found = '';
  const whileStopped = () => {
    found = checkV2Store(etcd.dataDir);
  };
  const died = await etcd
    .restart({ program: built('3.6'), without: ['--enable-v2', '--snapshot-count=5'], whileStopped })
    .then(
      () => undefined,
      (error: unknown) => {
        if (error instanceof EtcdDied) return error.message;
        throw error;
      },
    );
  return { found, died };
}

const request = async (etcd: EtcdMember, path: string, init: RequestInit = {}): Promise<void> => {
  await (await fetch(etcd.url + path, init)).text();
};

const user = { method: 'PUT', headers: { 'content-type': 'application/json' }, body: '{"user":"app","password":"pw"}' };

describe('a request of etcd v2 since the last snapshot stops etcd 3.6, which panics at it:', () => {
  test.each([
    ['a write', '/v2/keys/_locks/a?value=1', { method: 'POST' }],
    ['a removal, also of a key that does not exist', '/v2/keys/_locks/a', { method: 'DELETE' }],
    ['a read by quorum', '/v2/keys/_locks?quorum=true', {}],
    ['GET /health', '/health', {}],
  ])('%s; after a snapshot, etcd 3.6 starts', async (_, path, init) => {
    const etcd = await useEtcd35();
    await request(etcd, path, init);
    const { found, died } = await upgrade(etcd);
    expect(found).toBe(IN_THE_LOG);
    expect(died).toContain('detected disallowed v2 WAL for stage --v2-deprecation=write-only');
  });
});

test('a snapshot after the last request of etcd v2 lets etcd 3.6 start, also if hidden keys are left', async () => {
  const etcd = await useEtcd35();
  await request(etcd, '/v2/keys/_locks/a?value=1', { method: 'POST' });
  await forceSnapshot(etcd);
  expect(await upgrade(etcd)).toEqual({ found: NOTHING_FOUND, died: undefined });
});

test('a key with a TTL makes etcd 3.5 write to the log until it has expired, also without --enable-v2', async () => {
  const etcd = await useEtcd35();
  await request(etcd, '/v2/keys/_locks/a?value=1&ttl=600', { method: 'POST' });
  await forceSnapshot(etcd);
  const sinceSnapshot = () => checkV2Store(etcd.dataDir);
  expect(await until(sinceSnapshot, (found) => found !== NOTHING_FOUND, { every: 200 })).toBe(IN_THE_LOG);
});

describe('left-over content of etcd v2 in the snapshot stops etcd 3.6:', () => {
  test.each([
    ['an empty directory that is not hidden', '/v2/keys/locks?dir=true', { method: 'PUT' }],
    ['a user', '/v2/auth/users/app', user],
  ])('%s', async (_, path, init) => {
    const etcd = await useEtcd35();
    await request(etcd, path, init);
    await forceSnapshot(etcd);
    const { found, died } = await upgrade(etcd);
    expect(found).toBe(IN_THE_SNAPSHOT);
    expect(died).toContain('detected disallowed custom content in v2store');
  });
});

test('doctor --api v3 leaves nothing in the log that stops etcd 3.6, and names what stops it', async () => {
  const etcd = await useEtcd35();
  const { code, stdout } = await runCli(['doctor', '--api', 'v3', '--endpoints', etcd.url]);
  expect(code).toBe(0);
  expect(stdout).toContain(`etcd 3.6 must not be started yet: the v2 API is enabled at ${etcd.url}\n`);
  expect(await upgrade(etcd)).toEqual({ found: NOTHING_FOUND, died: undefined });
});
