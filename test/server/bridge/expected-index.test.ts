// Requests that expect an index of an entry, as this package's renewals and removals on etcd v2 do: none undoes a later renewal.
import { expect, inject, onTestFinished, test } from 'vitest';
import { EtcdClient } from '../../../src/client.ts';
import { EtcdCompareFailed } from '../../../src/errors.ts';
import { Lock } from '../../../src/python/lock.ts';
import { gate } from '../../support/gate.ts';
import { freshName, rejection, useProxy } from '../../support/locks.ts';
import { first } from '../../support/lost-requests.ts';
import type { ProxiedRequest } from '../../support/proxy.ts';
import { useBridge, useKeys } from './use-bridge.ts';

const VALUE = '0123456789abcdef0123456789abcdef';

const isGrant = ({ path }: ProxiedRequest): boolean => path.endsWith('/lease/grant');
const isRemoval = ({ path, body }: ProxiedRequest): boolean =>
  path.endsWith('/kv/txn') && body.includes('request_delete_range');

/** An entry, seen through two bridges: the requests of one of them can be delayed. */
async function setUp() {
  const proxy = await useProxy();
  const [slow, keys] = [useKeys(await useBridge({ endpoints: proxy.url })), useKeys(await useBridge())];
  const { node } = await keys.createInOrder(`/_locks/${freshName()}`, VALUE, { ttl: 60 });
  const expected = { prevValue: VALUE, prevIndex: node.modifiedIndex };
  return { proxy, slow, keys, key: node.key, expected };
}

test('a renewal changes the index, also with the same TTL', async () => {
  const { keys, key, expected } = await setUp();
  const { node } = await keys.renew(key, { ...expected, ttl: 60 });
  expect(node.modifiedIndex).toBeGreaterThan(expected.prevIndex);
  expect(await rejection(keys.delete(key, expected))).toBeInstanceOf(EtcdCompareFailed);
  await keys.delete(key, { ...expected, prevIndex: node.modifiedIndex });
});

test('a renewal that is carried out late does not shorten the TTL of a later one', async () => {
  const { proxy, slow, keys, key, expected } = await setUp();
  const late = gate();
  proxy.intercept((request) => (isGrant(request) ? { answerAfter: late.opened } : undefined));
  const granting = proxy.next(isGrant, 'arrived');
  const renewal = rejection(slow.renew(key, { ...expected, ttl: 5 }));
  await granting;
  await keys.renew(key, { ...expected, ttl: 60 });
  late.open();
  expect(await renewal).toBeInstanceOf(EtcdCompareFailed);
  expect((await keys.get(key)).node.ttl).toBeGreaterThan(5);
});

test('a renewal succeeds although a former leader does not know the lease of the entry', async () => {
  const { proxy, slow, keys, key, expected } = await setUp();
  const { clusterId } = await keys.get(key);
  const header = { cluster_id: String(BigInt(`0x${clusterId}`)), member_id: '1', revision: '1', raft_term: '1' };
  const unknown = { late: new Promise(() => {}), status: 200, body: { result: { header, ID: '1' } } };
  proxy.intercept(first(3, ({ path }) => path.endsWith('/lease/keepalive'), unknown));
  const { node } = await slow.renew(key, { ...expected, ttl: 60 });
  expect(node.modifiedIndex).toBeGreaterThan(expected.prevIndex);
});

test('a removal that is carried out late does not remove an entry that was renewed', async () => {
  const { proxy, slow, keys, key, expected } = await setUp();
  const late = gate();
  proxy.intercept((request) => (isRemoval(request) ? { hold: late.opened } : undefined));
  const removing = proxy.next(isRemoval, 'arrived');
  const removal = rejection(slow.delete(key, expected));
  await removing;
  await keys.renew(key, { ...expected, ttl: 30 });
  late.open();
  expect(await removal).toBeInstanceOf(EtcdCompareFailed);
  expect((await keys.get(key)).node.value).toBe(VALUE);
});

test.each(['etcd v2', 'a bridge'])(
  'a late release does not remove the entry that another Lock has taken over, on %s',
  async (store) => {
    const name = freshName();
    const url = store === 'a bridge' ? (await useBridge()).url : inject('etcd');
    const proxy = await useProxy(url);
    const use = (endpoints: string): EtcdClient => {
      const client = new EtcdClient({ endpoints });
      onTestFinished(() => client.close({ timeout: 1 }).catch(() => {}));
      return client;
    };
    const lock = new Lock(use(proxy.url), name);
    await lock.acquire({ lockTtl: 60 });
    const late = gate();
    const isDelete = ({ method }: ProxiedRequest) => method === 'DELETE';
    proxy.intercept(first(1, isDelete, { hold: late.opened }));
    proxy.intercept((request) => (isDelete(request) ? { silent: true } : undefined));
    const arrived = proxy.next(isDelete, 'arrived');
    const answered = proxy.next(isDelete, 'answered');
    lock.release().catch(() => {});
    await arrived;
    const next = new Lock(use(url), name);
    await next.setUuid(lock.uuid);
    expect(await next.acquire({ lockTtl: 60 })).toBe(true);
    late.open();
    expect((await answered).status).toBe(412);
    expect(await next.isAcquired()).toBe(true);
    await next.release();
  },
);
