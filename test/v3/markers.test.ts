import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest';
import type { Marker } from '../../src/recipe/store.ts';
import { V3Client } from '../../src/v3/client.ts';
import { type EtcdMember, startEtcd } from '../support/etcd.ts';
import { base64, gateway } from '../support/gateway.ts';
import { freshName, useProxy } from '../support/locks.ts';
import { useOnce } from '../support/once.ts';
import type { ProxiedRequest } from '../support/proxy.ts';
import { until } from '../support/until.ts';

let etcd: EtcdMember;

// A server of their own, because these tests count all leases.
beforeAll(async () => {
  etcd = await startEtcd();
});
afterAll(() => etcd.stop());

/** Returns a client and the marker of a lock. The end of the test removes the marker and its lease. */
function useMarker(endpoints = etcd.url, name = freshName()) {
  const client = new V3Client({ endpoints });
  const marker = client.store.marker(name);
  onTestFinished(async () => {
    await client.close();
    for (const lease of await leases()) await gateway('/lease/revoke', { ID: lease }, etcd.url);
  });
  return { client, name, marker };
}

const leases = async (): Promise<string[]> => {
  const { leases: found = [] } = await gateway('/lease/leases', {}, etcd.url);
  return found.map(({ ID }) => ID);
};

const leaseOf = async (key: string): Promise<string | undefined> =>
  (await gateway('/kv/range', { key: base64(key) }, etcd.url)).kvs?.[0]?.lease;

test('each write renews the lease of the marker, and creates no other one', async () => {
  const { marker } = useMarker();
  let last: Marker | undefined;
  for (const to of ['one', 'two', 'three']) last = await marker.advance({ from: last, to, ttl: 600 }, {});
  expect(last?.value).toBe('three');
  expect(await leases()).toEqual([await leaseOf(marker.key)]);
});

test('a longer TTL needs another lease, and the old one is revoked', async () => {
  const { marker } = useMarker();
  const first = await marker.advance({ from: undefined, to: 'short', ttl: 600 }, {});
  const old = await leaseOf(marker.key);
  await marker.advance({ from: first, to: 'long', ttl: 900 }, {});
  const present = await leaseOf(marker.key);
  expect(present).not.toBe(old);
  expect(await leases()).toEqual([present]);
  expect((await gateway('/lease/timetolive', { ID: present }, etcd.url)).TTL).toMatch(/^(?:900|8\d\d)$/);
});

test('the removal of a marker leaves no lease', async () => {
  const { marker } = useMarker();
  const written = await marker.advance({ from: undefined, to: 'one', ttl: 600 }, {});
  expect(written && (await marker.remove(written, {}))).toBe(true);
  await until(leases, (found) => found.length === 0);
});

test('a refused write leaves no lease', async () => {
  const { marker } = useMarker();
  await marker.advance({ from: undefined, to: 'first', ttl: 600 }, {});
  await marker.advance({ from: undefined, to: 'refused', ttl: 600 }, {});
  expect(await leases()).toEqual([await leaseOf(marker.key)]);
});

test('the lease of a refused write is never used again: its revocation may be carried out late', async () => {
  const { marker, client } = useMarker();
  await marker.advance({ from: undefined, to: 'tick', ttl: 600 }, {});
  const revoked: string[] = [];
  const { leases } = client.requests;
  const revoke = leases.revoke.bind(leases);
  leases.revoke = (id, options) => {
    revoked.push(id);
    return revoke(id, options);
  };
  const other = await marker.advance({ from: undefined, to: 'next tick', ttl: 900 }, {});
  expect(revoked).toHaveLength(1);
  expect(await marker.advance({ from: other, to: 'next tick', ttl: 900 }, {})).toMatchObject({ value: 'next tick' });
  await gateway('/lease/revoke', { ID: revoked[0] }, etcd.url).catch(() => {});
  expect(await marker.read({})).toMatchObject({ value: 'next tick' });
});

test('a marker whose lease has ended is not written, and leaves no lease', async () => {
  const { marker } = useMarker();
  const first = await marker.advance({ from: undefined, to: 'gone', ttl: 600 }, {});
  await gateway('/lease/revoke', { ID: await leaseOf(marker.key) }, etcd.url);
  expect(await marker.advance({ from: first, to: 'next', ttl: 600 }, {})).toBeUndefined();
  expect(await leases()).toEqual([]);
});

test('with an empty lock prefix, the marker is in no queue and in no listing', async () => {
  const client = new V3Client({ endpoints: etcd.url, lockPrefix: '' });
  onTestFinished(() => client.close());
  const marker = client.store.marker('a/b');
  await marker.advance({ from: undefined, to: 'empty prefix', ttl: 600 }, {});
  expect(marker.key).toBe('_ticks:a%2Fb');
  expect([...(await client.store.list()).keys()]).toEqual([]);
  expect((await client.surveyor.locks('')).queues).toEqual([]);
  await gateway('/lease/revoke', { ID: await leaseOf(marker.key) }, etcd.url);
});

const isWrite = (name: string, { path, body }: ProxiedRequest): boolean =>
  path.endsWith('/kv/txn') && body.includes(base64(`/_locks_ticks:${name}`)) && body.includes('request_put');
const isGrant = (_: string, { path }: ProxiedRequest): boolean => path.endsWith('/lease/grant');
const isKeepAlive = (_: string, { path }: ProxiedRequest): boolean => path.endsWith('/lease/keepalive');
const isRevoke = (_: string, { path }: ProxiedRequest): boolean => path.endsWith('/lease/revoke');

test.each([
  ['a write of the record', isWrite],
  ['the creation of a lease', isGrant],
  ['a renewal', isKeepAlive],
  ['a revocation', isRevoke],
])(
  'every other answer to %s is lost: each tick runs once, and only the lease of the record is left',
  async (_, isLost) => {
    const proxy = await useProxy(etcd.url);
    const { client, name, marker } = useMarker(proxy.url);
    let isOdd = false;
    proxy.intercept((request) => {
      if (!isLost(name, request)) return undefined;
      isOdd = !isOdd;
      return isOdd ? { swallow: true } : undefined;
    });
    const { ticks, reports, nextTick } = useOnce(client, name);
    for (let tick = 0; tick < 5; tick += 1) await nextTick();
    expect(reports.map(({ outcome }) => outcome)).toEqual(Array(5).fill('ran'));
    expect(ticks.map(({ missed }) => missed)).toEqual([undefined, 0, 0, 0, 0]);
    await client.close();
    expect(await until(leases, ({ length }) => length === 1)).toEqual([await leaseOf(marker.key)]);
  },
);
