// A bridge to both stores: its clients hold a lock on etcd v2 and on v3.
import { randomInt } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { expect, inject, onTestFinished, test } from 'vitest';
import { EtcdCompareFailed, EtcdKeyNotFound, EtcdRootReadOnly } from '../../../../src/errors.ts';
import { LockManager } from '../../../../src/manager/manager.ts';
import { Bridge } from '../../../../src/server/bridge/bridge.ts';
import { keysOf, untilKeys, useEtcdClient } from '../../../support/both.ts';
import { startEtcd } from '../../../support/etcd.ts';
import { gate } from '../../../support/gate.ts';
import { base64, entriesBelow, gateway } from '../../../support/gateway.ts';
import { entriesIn, freshName, raw, rejection, useProxy } from '../../../support/locks.ts';
import { first } from '../../../support/lost-requests.ts';
import type { ProxiedRequest } from '../../../support/proxy.ts';
import { until } from '../../../support/until.ts';
import { expectEndedPollsAreNoErrors } from '../ended-polls.ts';
import { health, metricsOf } from '../pages.ts';
import { useBridge, useKeys, useLocks, usePython } from '../use-bridge.ts';

const VALUE = '0123456789abcdef0123456789abcdef';
const OTHER = 'fedcba9876543210fedcba9876543210';

/** A queue through a bridge to both stores. */
async function setUp() {
  const name = freshName();
  const dir = `/_locks/${name}`;
  const bridge = await useBridge({ api: 'both' });
  return {
    name,
    dir,
    url: bridge.url,
    keys: useKeys(bridge),
    /** The values in the queue, as a client sees it: those of the entries on v2, after `placeholder` if the first one waits on v3. */
    async shown(): Promise<(string | undefined)[]> {
      const { node } = await useKeys(bridge).get(dir, { recursive: true, sorted: true });
      return node.nodes.map(({ key, value }) => (key.endsWith('/00000000000000000000') ? 'placeholder' : value));
    },
  };
}

/** The same, with another bridge, `slow`, that reaches etcd through a proxy. */
async function setUpSlow() {
  const proxy = await useProxy();
  return { ...(await setUp()), proxy, slow: useKeys(await useBridge({ api: 'both', endpoints: proxy.url })) };
}

test('python-etcd holds a lock in both stores, and leaves none of its entries', async () => {
  const { name, url } = await setUp();
  const lock = await (await usePython(url)).lock(name);
  expect(await lock.acquire({ lockTtl: 60 })).toBe(true);
  const { v2, v3 } = await keysOf(name);
  expect(v2).toHaveLength(1);
  expect(v3).toEqual(v2);
  expect(await lock.isAcquired()).toBe(true);
  await lock.release();
  expect(await keysOf(name)).toEqual({ v2: [], v3: [] });
});

test.each(['v2', 'both', 'v3'] as const)(
  'python-etcd waits for a holder of kind %s, and it for python-etcd',
  async (api) => {
    const { name, url } = await setUp();
    const locks = api === 'both' ? new LockManager(useEtcdClient(), { ttl: 30 }) : useLocks(api);
    const lock = await (await usePython(url)).lock(name);
    const held = await locks.acquire(name);
    expect(await lock.acquire({ blocking: false, lockTtl: 60 })).toBe(false);
    const waiting = lock.acquire({ lockTtl: 60 });
    await held.release();
    expect(await waiting).toBe(true);
    expect(await locks.acquire(name, { ifAvailable: true })).toBeNull();
    const next = locks.acquire(name);
    await lock.release();
    await (await next).release();
    expect(await keysOf(name)).toEqual({ v2: [], v3: [] });
  },
);

test('the entries of clients have the values that they gave, and a label for others', async () => {
  const { dir, keys } = await setUp();
  const { node } = await keys.createInOrder(dir, VALUE, { ttl: 30 });
  expect(node.value).toBe(VALUE);
  expect((await keys.get(node.key)).node.value).toBe(VALUE);
  expect((await keys.get(dir, { recursive: true })).node.nodes).toMatchObject([{ key: node.key, value: VALUE }]);
  expect(await entriesIn(dir)).toMatchObject([{ value: `${VALUE}@via bridge` }]);
  expect(await entriesBelow(`${dir}/`)).toMatchObject([{ key: node.key, value: `${VALUE}@via bridge` }]);
  expect((await keys.delete(node.key)).prevNode?.value).toBe(VALUE);
});

test('an entry is on v3 only once it is the first on v2', async () => {
  const { name, dir, keys } = await setUp();
  const [one, two] = [await keys.createInOrder(dir, VALUE), await keys.createInOrder(dir, OTHER)];
  await keys.get(dir, { recursive: true });
  expect(await keysOf(name)).toEqual({ v2: [one.node.key, two.node.key], v3: [one.node.key] });
  await keys.delete(one.node.key);
  expect(await keysOf(name)).toEqual({ v2: [two.node.key], v3: [] });
  await keys.get(dir, { recursive: true });
  expect((await keysOf(name)).v3).toEqual([two.node.key]);
  await keys.delete(two.node.key);
});

test('an append that is repeated makes one entry', async () => {
  const { name, dir, keys } = await setUp();
  const first = await keys.createInOrder(dir, VALUE, { ttl: 30 });
  const second = await keys.createInOrder(dir, VALUE, { ttl: 60 });
  expect(second.node.key).toBe(first.node.key);
  expect((await keys.get(first.node.key)).node.ttl).toBeGreaterThan(30);
  await keys.delete(first.node.key);
  expect(await keysOf(name)).toEqual({ v2: [], v3: [] });
});

test('a renewal prolongs both entries, and one of an entry that has expired fails', async () => {
  const { name, dir, keys } = await setUp();
  const { node } = await keys.createInOrder(dir, VALUE, { ttl: 30 });
  await keys.get(dir, { recursive: true });
  await keys.set(node.key, VALUE, { ttl: 60 });
  const { kvs: [own] = [] } = await gateway('/kv/range', { key: base64(node.key) });
  expect((await keys.get(node.key)).node.ttl).toBeGreaterThan(50);
  expect(Number((await gateway('/lease/timetolive', { ID: own?.lease })).TTL)).toBeGreaterThan(59);
  await keys.set(node.key, VALUE, { ttl: 1 });
  await untilKeys(name, 0, 1);
  expect(await rejection(keys.set(node.key, VALUE, { ttl: 60 }))).toBeInstanceOf(EtcdKeyNotFound);
});

test('a twin that another bridge creates while its entry is being renewed outlives the renewed entry', async () => {
  const { dir, keys, proxy, slow } = await setUpSlow();
  const { node } = await keys.createInOrder(dir, VALUE, { ttl: 10 });
  const renewal = gate();
  const isRenewal = ({ method }: ProxiedRequest) => method === 'PUT';
  proxy.intercept(first(1, isRenewal, { hold: renewal.opened }));
  const arrived = proxy.next(isRenewal, 'arrived');
  const renewed = slow.set(node.key, VALUE, { ttl: 60 });
  await arrived;
  await keys.get(dir, { recursive: true });
  expect((await entriesBelow(`${dir}/`))[0]?.ttl).toBeLessThan(20);
  renewal.open();
  await renewed;
  expect((await entriesBelow(`${dir}/`))[0]?.ttl).toBeGreaterThan(50);
  await keys.delete(node.key);
});

test.each(['with', 'without'] as const)(
  'a wait for an entry %s an index ends when the entry is written again',
  async (kind) => {
    const { dir, keys } = await setUp();
    const { node } = await keys.createInOrder(dir, VALUE, { ttl: 60 });
    const started = gate();
    const written = keys.watch(node.key, {
      after: kind === 'with' ? node.modifiedIndex : undefined,
      started: started.open,
      timeout: Number.POSITIVE_INFINITY,
    });
    await started.opened;
    await keys.set(node.key, VALUE, { ttl: 60, prevIndex: node.modifiedIndex });
    expect(await written).toMatchObject({ action: 'set', node: { key: node.key, value: VALUE } });
    await keys.delete(node.key);
  },
);

test('a renewal ends although etcd v3 answers slowly', async () => {
  const { dir, keys, proxy, slow } = await setUpSlow();
  const { node } = await keys.createInOrder(dir, VALUE, { ttl: 10 });
  await keys.get(dir, { recursive: true });
  proxy.intercept(({ path }) => (path.startsWith('/v3/') ? { answerAfter: sleep(400) } : undefined));
  await slow.set(node.key, VALUE, { ttl: 60 });
  expect((await entriesBelow(`${dir}/`))[0]?.ttl).toBeGreaterThan(50);
  await keys.delete(node.key);
});

test('an entry without TTL has none on v3 either', async () => {
  const { dir, keys } = await setUp();
  const { node } = await keys.createInOrder(dir, VALUE);
  await keys.get(dir, { recursive: true });
  const { kvs: [own] = [] } = await gateway('/kv/range', { key: base64(node.key) });
  expect(own).toBeDefined();
  expect(own?.lease).toBeUndefined();
  await keys.delete(node.key);
});

test('an entry on v3 whose entry on v2 is gone is removed by the next client that reads the queue', async () => {
  const { name, dir, keys } = await setUp();
  const { node } = await keys.createInOrder(dir, VALUE, { ttl: 60 });
  await keys.get(dir, { recursive: true });
  await raw('DELETE', node.key);
  expect((await keysOf(name)).v3).toEqual([node.key]);
  expect((await keys.get(dir, { recursive: true })).node.nodes).toEqual([]);
  expect(await keysOf(name)).toEqual({ v2: [], v3: [] });
});

test('while others hold on v3, the queue shows them as the first entry, which can be waited for, and not changed', async () => {
  const { name, dir, keys, shown } = await setUp();
  const held = await useLocks('v3').acquire(name);
  const { node } = await keys.createInOrder(dir, VALUE, { ttl: 60 });
  expect(await shown()).toEqual(['placeholder', VALUE]);
  const placeholder = `${dir}/00000000000000000000`;
  expect((await keys.get(placeholder)).node.value).toBe((await entriesBelow(`${dir}/`))[0]?.value);
  expect(await rejection(keys.set(placeholder, held.uuid, { ttl: 1 }))).toBeInstanceOf(EtcdRootReadOnly);
  expect(await rejection(keys.delete(placeholder))).toBeInstanceOf(EtcdRootReadOnly);
  const gone = keys.watch(placeholder, { timeout: Number.POSITIVE_INFINITY });
  await held.release();
  expect(await gone).toMatchObject({ action: 'delete', node: { key: placeholder } });
  expect(await shown()).toEqual([VALUE]);
  expect(await rejection(keys.get(placeholder))).toBeInstanceOf(EtcdKeyNotFound);
  await keys.delete(node.key);
});

test('a client of Go, whose entry has no value, is shown as well', async () => {
  const { dir, keys, shown } = await setUp();
  await gateway('/kv/put', { key: base64(`${dir}/694d`), value: '' });
  const { node } = await keys.createInOrder(dir, VALUE, { ttl: 60 });
  expect(await shown()).toEqual(['placeholder', VALUE]);
  await gateway('/kv/deleterange', { key: base64(`${dir}/694d`) });
  expect(await shown()).toEqual([VALUE]);
  await keys.delete(node.key);
});

test('a lock whose first client on v2 uses no bridge has nobody on v3', async () => {
  const { name, dir, keys, shown } = await setUp();
  const held = await useLocks('v2').acquire(name);
  const { node } = await keys.createInOrder(dir, VALUE, { ttl: 60 });
  expect(await shown()).toEqual([expect.stringContaining(held.uuid), VALUE]);
  expect((await keysOf(name)).v3).toEqual([]);
  await held.release();
  expect(await shown()).toEqual([VALUE]);
  await keys.delete(node.key);
});

test('an entry on v3 that ends too early, because its client has renewed the other one since, is prolonged', async () => {
  const { dir, keys } = await setUp();
  const { node } = await keys.createInOrder(dir, VALUE, { ttl: 60 });
  await gateway('/lease/grant', { ID: '4711', TTL: '20' });
  onTestFinished(() => void gateway('/lease/revoke', { ID: '4711' }));
  // As a bridge that was stopped may create it.
  await gateway('/kv/put', { key: base64(node.key), value: base64(`${VALUE}@via bridge`), lease: '4711' });
  await keys.get(dir, { recursive: true });
  const { kvs: [own] = [] } = await gateway('/kv/range', { key: base64(node.key) });
  expect(Number((await gateway('/lease/timetolive', { ID: own?.lease })).TTL)).toBeGreaterThanOrEqual(60);
  await keys.delete(node.key);
});

test('clients that read at the same time through several bridges enter v3 once', async () => {
  const { name, dir, keys } = await setUp();
  const others = [useKeys(await useBridge({ api: 'both' })), useKeys(await useBridge({ api: 'both' }))];
  const { node } = await keys.createInOrder(dir, VALUE, { ttl: 60 });
  const reads = [keys, ...others, keys, ...others].map((each) => each.get(dir, { recursive: true }));
  for (const { node: queue } of await Promise.all(reads)) expect(queue.nodes).toHaveLength(1);
  expect((await keysOf(name)).v3).toEqual([node.key]);
  await keys.delete(node.key);
});

test('an entry that is removed while others read leaves nothing on v3', async () => {
  const { name, dir, keys } = await setUp();
  const readers = [useKeys(await useBridge({ api: 'both' })), useKeys(await useBridge({ api: 'both' }))];
  for (let i = 0; i < 20; i += 1) {
    const { node } = await keys.createInOrder(dir, VALUE, { ttl: 600 });
    const reads = [...readers, ...readers].map((each) => each.get(dir, { recursive: true }));
    await Promise.all([keys.delete(node.key), ...reads]);
    // A read that was repeated, because etcd was busy, may still go on.
    await untilKeys(name, 0, 0);
  }
});

test('readers hold together, and a writer on v3 waits for all of them', async () => {
  const { name, dir, keys, shown } = await setUp();
  const [one, two] = [
    await keys.createInOrder(dir, `shared:${VALUE}`, { ttl: 60 }),
    await keys.createInOrder(dir, `shared:${OTHER}`, { ttl: 60 }),
  ];
  expect(await shown()).toEqual([`shared:${VALUE}`, `shared:${OTHER}`]);
  expect((await keysOf(name)).v3).toHaveLength(2);
  const writer = useLocks('v3').acquire(name);
  await keys.delete(one.node.key);
  await untilKeys(name, 1, 2);
  expect(await shown()).toEqual([`shared:${OTHER}`]);
  await keys.delete(two.node.key);
  await (await writer).release();
});

test('a reader that holds is shown as such, although one that came later waits for a writer on v3', async () => {
  const { name, dir, keys, shown } = await setUp();
  const held = await useLocks('v3').acquire(name);
  const one = await keys.createInOrder(dir, `shared:${VALUE}`, { ttl: 60 });
  expect(await shown()).toEqual(['placeholder', `shared:${VALUE}`]);
  const writer = useLocks('v3').acquire(name);
  await untilKeys(name, 1, 3);
  const two = await keys.createInOrder(dir, `shared:${OTHER}`, { ttl: 60 });
  expect(await shown()).toEqual(['placeholder', `shared:${VALUE}`, `shared:${OTHER}`]);
  const first = keys.watch(`${dir}/00000000000000000000`, { timeout: Number.POSITIVE_INFINITY });
  await held.release();
  expect(await first).toMatchObject({ action: 'delete' });
  const { node: queue } = await keys.get(dir, { recursive: true, sorted: true });
  const [, placeholder] = queue.nodes;
  expect(queue.nodes).toMatchObject([{ key: one.node.key }, { key: `${one.node.key}0` }, { key: two.node.key }]);
  expect((await keys.get(placeholder?.key ?? '')).node.value).toBe(placeholder?.value);
  expect(await rejection(keys.delete(placeholder?.key ?? ''))).toBeInstanceOf(EtcdRootReadOnly);
  const gone = keys.watch(placeholder?.key ?? '', { timeout: Number.POSITIVE_INFINITY });
  await keys.delete(one.node.key);
  await (await writer).release();
  expect(await gone).toMatchObject({ action: 'delete', node: { key: placeholder?.key } });
  expect(await shown()).toEqual([`shared:${OTHER}`]);
  await keys.delete(two.node.key);
});

test('two readers of this package and a writer on v3 all get the lock, whatever the order in which they come', async () => {
  const { name, url } = await setUp();
  const held = await useLocks('v3').acquire(name);
  const readers = [useLocks('v2', url), useLocks('v2', url)];
  const order: string[] = [];
  const one = readers[0]?.request(name, { mode: 'shared' }, () => void order.push('reader'));
  await untilKeys(name, 1, 2);
  const writer = useLocks('v3').request(name, () => void order.push('writer'));
  await untilKeys(name, 1, 3);
  const two = readers[1]?.request(name, { mode: 'shared' }, () => void order.push('second reader'));
  await untilKeys(name, 2, 4);
  await held.release();
  await Promise.all([one, writer, two]);
  expect(order).toEqual(['reader', 'writer', 'second reader']);
  expect(await keysOf(name)).toEqual({ v2: [], v3: [] });
});

test('a client of both APIs removes an entry on v3 that a bridge has left there', async () => {
  const { name, dir, keys } = await setUp();
  const { node } = await keys.createInOrder(dir, VALUE);
  await keys.get(dir, { recursive: true });
  const waiting = new LockManager(useEtcdClient(), { ttl: 30 }).acquire(name);
  await untilKeys(name, 2, 1);
  // As an operator does whose process with python-etcd has crashed.
  await raw('DELETE', node.key);
  const next = await waiting;
  expect((await keysOf(name)).v3).not.toContain(node.key);
  await next.release();
  expect(await keysOf(name)).toEqual({ v2: [], v3: [] });
});

test('a client of both APIs removes such an entry also if a client of v3 waits for it as well', async () => {
  const { name, dir, keys } = await setUp();
  const { node } = await keys.createInOrder(dir, VALUE);
  await keys.get(dir, { recursive: true });
  const between = useLocks('v3').acquire(name);
  await untilKeys(name, 1, 2);
  const waiting = new LockManager(useEtcdClient(), { ttl: 30 }).acquire(name);
  await untilKeys(name, 2, 2);
  await raw('DELETE', node.key);
  await (await between).release();
  await (await waiting).release();
  expect(await keysOf(name)).toEqual({ v2: [], v3: [] });
});

test('a bridge to v3 leaves the lease of a twin that a bridge to both has not finished', async () => {
  const { name, dir } = await setUp();
  const lease = String((0x2b715dn << 40n) | BigInt(randomInt(2 ** 40)));
  await gateway('/lease/grant', { ID: lease, TTL: '60' });
  onTestFinished(async () => void (await gateway('/lease/revoke', { ID: lease })));
  const key = `${dir}/00000000000000000042`;
  await gateway('/kv/put', { key: base64(key), value: base64(`${VALUE}@via bridge`), lease });
  const listing = await useKeys(await useBridge({ api: 'v3' })).get(dir, { recursive: true });
  expect(listing.node.nodes).toHaveLength(1);
  const { kvs: [twin] = [] } = await gateway('/kv/range', { key: base64(key) });
  expect(twin?.lease).toBe(lease);
  expect((await keysOf(name)).v2).toEqual([]);
});

test.each(['v3', 'both'] as const)('the name of a lock may contain a line break: bridge to %s', async (api) => {
  const keys = useKeys(await useBridge({ api }));
  const dir = `/_locks/${freshName()}\nsecond line`;
  const { node } = await keys.createInOrder(dir, VALUE, { ttl: 60 });
  const listing = await keys.get(dir, { recursive: true });
  expect(listing.node.nodes).toMatchObject([{ key: node.key, value: VALUE }]);
  const renewed = await keys.set(node.key, VALUE, { prevExist: true, ttl: 50 });
  const gone = keys.watch(node.key, { after: renewed.node.modifiedIndex });
  await keys.delete(node.key);
  expect(await gone).toMatchObject({ action: 'delete' });
  expect((await keys.get(dir, { recursive: true })).node.nodes).toEqual([]);
});

test.each(['v3', 'both'] as const)(
  'a lease used again that ends before its next entry is created is replaced: bridge to %s',
  async (api) => {
    const proxy = await useProxy();
    const keys = useKeys(await useBridge({ api, endpoints: proxy.url }));
    const dir = `/_locks/${freshName()}`;
    const isGrant = ({ path }: ProxiedRequest) => path.endsWith('/lease/grant');
    const isAppend = ({ body }: ProxiedRequest) => body.includes('request_put');
    const hold = async () => {
      const { node } = await keys.createInOrder(dir, VALUE, { ttl: 60 });
      await keys.get(dir, { recursive: true });
      return node;
    };
    await keys.delete((await hold()).key);
    const grants = proxy.requests.filter(isGrant).length;
    const late = gate();
    proxy.intercept(first(1, isAppend, { hold: late.opened }));
    const arrived = proxy.next(isAppend, 'arrived');
    const holding = hold();
    const ID = /"lease":"(\d+)"/.exec((await arrived).body)?.[1];
    expect(proxy.requests.filter(isGrant)).toHaveLength(grants);
    await gateway('/lease/revoke', { ID });
    late.open();
    const { key } = await holding;
    expect((await keys.get(key)).node).toMatchObject({ value: VALUE, ttl: expect.any(Number) });
    expect(proxy.requests.filter(isGrant)).toHaveLength(grants + 1);
    expect(await entriesBelow(`${dir}/`)).toHaveLength(1);
    await keys.delete(key);
    expect(await entriesBelow(`${dir}/`)).toEqual([]);
  },
);

test('an entry without TTL that gets one has one on v3, too', async () => {
  const { dir, keys } = await setUp();
  const { node } = await keys.createInOrder(dir, VALUE);
  await keys.get(dir, { recursive: true });
  await keys.set(node.key, VALUE, { ttl: 30 });
  const { kvs: [own] = [] } = await gateway('/kv/range', { key: base64(node.key) });
  expect(Number((await gateway('/lease/timetolive', { ID: own?.lease })).TTL)).toBeGreaterThanOrEqual(30);
  await keys.set(node.key, VALUE, {});
  const { kvs: [permanent] = [] } = await gateway('/kv/range', { key: base64(node.key) });
  expect(permanent).toBeDefined();
  expect(permanent?.lease).toBeUndefined();
  await keys.delete(node.key);
});

test.each(['delete', 'set'] as const)('the %s of an entry that is gone removes what is left on v3', async (call) => {
  const { name, dir, keys } = await setUp();
  const { node } = await keys.createInOrder(dir, VALUE, { ttl: 60 });
  await keys.get(dir, { recursive: true });
  await raw('DELETE', node.key);
  const answer = call === 'delete' ? keys.delete(node.key) : keys.set(node.key, VALUE, { ttl: 60 });
  expect(await rejection(answer)).toBeInstanceOf(EtcdKeyNotFound);
  expect(await keysOf(name)).toEqual({ v2: [], v3: [] });
});

test('a conditional removal that fails leaves the lock held on v3', async () => {
  const { name, dir } = await setUp();
  const proxy = await useProxy();
  const keys = useKeys(await useBridge({ api: 'both', endpoints: proxy.url }));
  const { node } = await keys.createInOrder(dir, VALUE, { ttl: 60 });
  await keys.get(dir, { recursive: true });
  proxy.intercept(({ method }) =>
    method === 'DELETE'
      ? { hold: raw('PUT', node.key, { ttl: '60', prevExist: 'true', value: `${VALUE}@via bridge` }) }
      : undefined,
  );
  const removal = keys.delete(node.key, { prevIndex: node.modifiedIndex });
  expect(await rejection(removal)).toBeInstanceOf(EtcdCompareFailed);
  expect(await keysOf(name)).toEqual({ v2: [node.key], v3: [node.key] });
  await raw('DELETE', node.key);
  await keys.get(dir, { recursive: true });
});

test('a twin without an entry on v2 is removed although its value is not text', async () => {
  const { dir, keys, shown } = await setUp();
  const value = Buffer.concat([Buffer.from([0xff]), Buffer.from('@via bridge')]).toString('base64');
  const stray = base64(`${dir}/00000000000000000007`);
  await gateway('/kv/put', { key: stray, value });
  const { node } = await keys.createInOrder(dir, VALUE, { ttl: 60 });
  expect(await shown()).toEqual([VALUE]);
  expect((await gateway('/kv/range', { key: stray })).kvs).toBeUndefined();
  await keys.delete(node.key);
});

test('python-etcd continues with an entry that it made without a bridge', async () => {
  const { name, dir, keys, shown } = await setUp();
  const { body } = await raw('POST', dir, { value: VALUE, ttl: '60' });
  await keys.set(body.node.key, VALUE, { ttl: 60 });
  expect(await shown()).toEqual([VALUE]);
  expect(await keysOf(name)).toEqual({ v2: [body.node.key], v3: [body.node.key] });
  await keys.delete(body.node.key);
  expect(await keysOf(name)).toEqual({ v2: [], v3: [] });
});

test('requests that no lock needs are refused, and change nothing', async () => {
  const { name, dir, keys } = await setUp();
  const { node } = await keys.createInOrder(dir, VALUE, { ttl: 60 });
  for (const call of [
    () => keys.set('/elsewhere', 'x'),
    () => keys.set(dir, 'x'),
    () => keys.set(node.key, OTHER),
    () => keys.createInOrder(node.key, OTHER),
    () => keys.delete(dir, { recursive: true }),
  ])
    expect(await rejection(call())).toBeInstanceOf(EtcdRootReadOnly);
  expect((await keysOf(name)).v2).toEqual([node.key]);
  await keys.delete(node.key);
});

test('a poll of a queue reports what clients do, with their values', async () => {
  const { dir, keys } = await setUp();
  const { index } = await keys.get(dir, { recursive: true });
  const created = keys.watch(dir, { recursive: true, after: index });
  const { node } = await keys.createInOrder(dir, VALUE, { ttl: 60 });
  const event = await created;
  expect(event).toMatchObject({ action: 'create', node: { key: node.key, value: VALUE } });
  await keys.delete(node.key);
  expect(await keys.watch(dir, { recursive: true, after: event?.index })).toMatchObject({ action: 'delete' });
});

test('a removal whose answer is lost removes the twin as well', async () => {
  const name = freshName();
  const proxy = await useProxy();
  const keys = useKeys(await useBridge({ api: 'both', endpoints: proxy.url }));
  const { node } = await keys.createInOrder(`/_locks/${name}`, VALUE);
  await keys.get(`/_locks/${name}`, { recursive: true });
  proxy.intercept(first(1, ({ method }) => method === 'DELETE', { swallow: true }));
  expect(await rejection(keys.delete(node.key, { prevIndex: node.modifiedIndex }))).toBeInstanceOf(EtcdKeyNotFound);
  expect(await keysOf(name)).toEqual({ v2: [], v3: [] });
});

test('a twin without a TTL gets one with its entry, though etcd v3 failed at first', async () => {
  const name = freshName();
  const dir = `/_locks/${name}`;
  const proxy = await useProxy();
  const keys = useKeys(await useBridge({ api: 'both', endpoints: proxy.url }));
  const { node } = await keys.createInOrder(dir, VALUE);
  await keys.get(dir, { recursive: true });
  let isWritten = false;
  const allow = proxy.intercept(({ method, path }) => {
    isWritten ||= method === 'PUT';
    return isWritten && path.startsWith('/v3') ? { refuse: true } : undefined;
  });
  await rejection(keys.set(node.key, VALUE, { ttl: 30 }));
  allow();
  await keys.set(node.key, VALUE, { ttl: 3 });
  const held = await useLocks('v3').acquire(name, { timeout: 60 });
  await held.release();
});

test('a read gives a twin without a TTL that of its entry', async () => {
  const { dir, keys } = await setUp();
  const { node } = await keys.createInOrder(dir, VALUE, { ttl: 30 });
  await gateway('/kv/put', { key: base64(node.key), value: base64(`${VALUE}@via bridge`) });
  await keys.get(dir, { recursive: true });
  expect((await entriesBelow(`${dir}/`))[0]?.ttl).toBeGreaterThan(20);
});

test('a bridge that is slow, then crashes, leaves the twin with the TTL that another bridge has given it', async () => {
  const { name, dir, keys, proxy, slow } = await setUpSlow();
  const { node } = await keys.createInOrder(dir, VALUE, { ttl: 30 });
  await keys.get(dir, { recursive: true });
  await until(
    async () => (await entriesIn(dir))[0]?.ttl ?? 0,
    (ttl) => ttl <= 18,
  );
  const [onV2, granted] = [gate(), gate()];
  const isRead = ({ method, path }: ProxiedRequest) => method === 'GET' && path.includes(name);
  const isGrant = ({ path }: ProxiedRequest) => path.endsWith('/lease/grant');
  const isMove = ({ path, body }: ProxiedRequest) => path.endsWith('/kv/txn') && body.includes('request_put');
  let isCrashed = false;
  proxy.intercept((request) => {
    if (isCrashed) return { silent: true };
    if (isRead(request)) return { answerAfter: onV2.opened };
    if (isGrant(request)) return { answerAfter: granted.opened };
    isCrashed = isMove(request);
    return undefined;
  });
  const [granting, moved] = [proxy.next(isGrant, 'arrived'), proxy.next(isMove, 'answered')];
  rejection(slow.get(dir, { recursive: true })).catch(() => {});
  const [seen = 0] = (await entriesIn(dir)).map(({ ttl }) => ttl);
  // When its answer comes, the twin seems to expire before the entry.
  await until(
    async () => (await entriesBelow(`${dir}/`))[0]?.ttl ?? 0,
    (ttl) => ttl < seen - 2,
  );
  onV2.open();
  await granting;
  await keys.set(node.key, VALUE, { ttl: 30 });
  granted.open();
  await moved;
  // The move would have set it to less than 20.
  expect((await entriesBelow(`${dir}/`))[0]?.ttl).toBeGreaterThan(22);
});

test('a bridge to both stores does not start without the v2 API, and is unhealthy once it is missing', async () => {
  const etcd = await startEtcd({ args: ['--enable-v2=false'] });
  onTestFinished(() => etcd.stop());
  const start = Bridge.start({ api: 'both', endpoints: etcd.url });
  expect(await rejection(start)).toMatchObject({
    code: 'ETCD_UNUSABLE_ANSWER',
    message: expect.stringContaining(`${etcd.url}: `),
  });
  const proxy = await useProxy(inject('etcd'));
  const bridge = await useBridge({ api: 'both', endpoints: proxy.url, metrics: true });
  proxy.intercept(({ path }) =>
    path.startsWith('/v2/') ? { late: new Promise(() => {}), status: 404, body: '404 page not found' } : undefined,
  );
  expect(await health(bridge)).toEqual([503, '{"health":"false"}']);
  expect(await metricsOf(bridge)).toMatchObject({ etcd_reachable: 0 });
});

test('a poll that its client ends is no error', () => expectEndedPollsAreNoErrors({ api: 'both' }));
