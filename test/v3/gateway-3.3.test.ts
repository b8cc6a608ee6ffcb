import { expect, onTestFinished, test } from 'vitest';
import { EtcdClient, EtcdException, EtcdUnusableAnswer, LockManager } from '../../src/index.ts';
import { V3Client } from '../../src/v3/client.ts';
import { useOldEtcd } from '../support/etcd-3.3.ts';
import { entriesBelow, gateway } from '../support/gateway.ts';
import { freshName, rejection } from '../support/locks.ts';
import { useStillClock } from '../support/still-clock.ts';
import { until } from '../support/until.ts';

function useManager(endpoints: string): LockManager {
  const client = new EtcdClient({ endpoints, api: 'v3' });
  onTestFinished(() => client.close());
  return new LockManager(client, { ttl: 30 });
}

test('on etcd 3.3 two managers wait for each other below /v3beta alone, leave no key, and end their leases', async () => {
  const { url, requests } = await useOldEtcd('3.3.27');
  const name = freshName();
  const client = new EtcdClient({ endpoints: url, api: 'v3' });
  const held = await useManager(url).acquire(name);
  const waiting = new LockManager(client, { ttl: 30 }).acquire(name);
  const [, waiter] = await until(
    () => entriesBelow(`/_locks/${name}/`),
    ({ length }) => length === 2,
  );
  expect(await held.release()).toBe(true);
  const next = await waiting;
  expect(next).toMatchObject({ key: waiter?.key });
  expect(next.fencingToken).toBeGreaterThan(held.fencingToken);
  expect(await next.release()).toBe(true);
  expect(await entriesBelow(`/_locks/${name}/`)).toEqual([]);
  await client.close();
  expect(requests).toContain('POST /v3beta/kv/txn');
  expect(requests).toContain('POST /v3beta/watch');
  expect(requests).toContain('POST /v3beta/kv/lease/revoke');
  expect(requests.filter((request) => !/^(GET \/version|POST \/v3beta\/\S+)$/.test(request))).toEqual([]);
});

test('on etcd 3.3 a lease that is gone is replaced by a new one', async () => {
  useStillClock();
  const { url, requests } = await useOldEtcd('3.3.27');
  const locks = useManager(url);
  const name = freshName();
  const first = await locks.acquire(name);
  const { kvs: [entry] = [] } = await gateway('/kv/range', { key: Buffer.from(first.key).toString('base64') });
  await first.release();
  await gateway('/lease/revoke', { ID: entry?.lease });
  const second = await locks.acquire(name);
  expect(second.fencingToken).toBeGreaterThan(first.fencingToken);
  expect(requests.filter((request) => request.endsWith('/lease/grant'))).toHaveLength(2);
  await second.release();
});

test('an error of etcd 3.3 is reported without the name that gRPC gives its code', async () => {
  const { url } = await useOldEtcd('3.3.27');
  const client = new V3Client({ endpoints: url });
  onTestFinished(() => client.close());
  const key = `/_locks/${freshName()}/1`;
  const error = await rejection(client.requests.entries.append(key, { value: 'u', lease: '12345', whole: false }));
  expect(error).toBeInstanceOf(EtcdException);
  expect(error).toMatchObject({ message: expect.stringMatching(/requested lease not found/), errorCode: 5 });
  expect(error).toMatchObject({ message: expect.not.stringMatching(/rpc error/) });
});

test.each(['2.3.8', '3.0.17', '3.1.20', '3.2.32'])(
  'etcd %s is refused by its version, before any request about a lock',
  async (version) => {
    const { url, requests } = await useOldEtcd(version);
    const error = await rejection(useManager(url).acquire(freshName()));
    expect(error).toBeInstanceOf(EtcdUnusableAnswer);
    expect(error).toMatchObject({
      message: expect.stringContaining(`etcd "${version}" is too old: api "v3" needs etcd 3.3 or later`),
    });
    expect(new Set(requests)).toEqual(new Set(['GET /version']));
  },
);
