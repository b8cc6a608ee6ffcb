import { setTimeout as sleep } from 'node:timers/promises';
import { expect, inject, onTestFinished, test } from 'vitest';
import {
  EtcdAlreadyExist,
  EtcdCompareFailed,
  EtcdDirNotEmpty,
  EtcdEventIndexCleared,
  EtcdException,
  EtcdKeyNotFound,
  EtcdNotFile,
  EtcdRootReadOnly,
  EtcdValueError,
} from '../../../src/errors.ts';
import { Bridge } from '../../../src/server/bridge/bridge.ts';
import { startEtcd } from '../../support/etcd.ts';
import { gate } from '../../support/gate.ts';
import { base64, entriesBelow, gateway } from '../../support/gateway.ts';
import { freshName, rejection, useProxy } from '../../support/locks.ts';
import { first } from '../../support/lost-requests.ts';
import type { ProxiedRequest } from '../../support/proxy.ts';
import { until } from '../../support/until.ts';
import { useBridge, useKeys, useLocks } from './use-bridge.ts';

const VALUE = '0123456789abcdef0123456789abcdef';
const OTHER = 'fedcba9876543210fedcba9876543210';

/** A queue through a bridge, and what etcd v3 has of it. */
async function setUp() {
  const name = freshName();
  const dir = `/_locks/${name}`;
  return {
    name,
    dir,
    keys: useKeys(await useBridge()),
    entries: () => entriesBelow(`${dir}/`),
    /** The leases of its entries. */
    leases: async () =>
      ((await gateway('/kv/range', { key: base64(`${dir}/`), range_end: base64(`${dir}0`) })).kvs ?? []).map(
        ({ lease }) => lease,
      ),
  };
}

test('an entry is named by its create revision, and has a lease', async () => {
  const { dir, keys, entries, leases } = await setUp();
  const { action, node } = await keys.createInOrder(dir, VALUE, { ttl: 30 });
  const [entry] = await entries();
  expect(action).toBe('create');
  expect(entry).toMatchObject({ key: `${dir}/${VALUE}`, value: VALUE });
  expect(node).toMatchObject({ key: `${dir}/${String(entry?.rank).padStart(20, '0')}`, value: VALUE, ttl: 30 });
  expect(await leases()).toEqual([expect.any(String)]);
  expect((await keys.get(node.key)).node).toMatchObject({ value: VALUE, ttl: expect.any(Number) });
  expect(await keys.delete(node.key)).toMatchObject({ action: 'delete', prevNode: { value: VALUE } });
  expect(await entries()).toEqual([]);
});

/** A queue through a bridge whose requests to etcd are recorded. */
async function setUpRecorded() {
  const { dir, leases } = await setUp();
  const proxy = await useProxy();
  const keys = useKeys(await useBridge({ endpoints: proxy.url }));
  const append = async (value: string, ttl = 30) => (await keys.createInOrder(dir, value, { ttl })).node.key;
  let seen = 0;
  /** The paths of its requests since the last call. */
  const asked = () => {
    const before = seen;
    seen = proxy.requests.length;
    return proxy.requests.slice(before).map(({ path }) => path);
  };
  return { dir, leases, proxy, keys, append, asked };
}

test('the lease of a removed entry serves the next entry with its TTL', async () => {
  const { leases, keys, append, asked } = await setUpRecorded();
  const key = await append(VALUE);
  const before = await leases();
  asked();
  await keys.delete(key);
  const next = await append(OTHER);
  expect(asked()).toEqual(['/v3/kv/txn', '/v3/lease/keepalive', '/v3/kv/txn']);
  expect(await leases()).toEqual(before);
  const third = await append(VALUE);
  expect(asked()).toEqual(['/v3/lease/grant', '/v3/kv/txn']);
  await keys.delete(third);
  await keys.delete(next);
});

test('a bridge does not use the lease of an entry again that another bridge has moved to another lease', async () => {
  const { leases, keys, append, asked } = await setUpRecorded();
  const other = useKeys(await useBridge());
  const key = await append(VALUE);
  const [before] = await leases();
  await other.set(key, VALUE, { ttl: 60 });
  await keys.delete(key);
  const next = await append(OTHER);
  expect(asked()).not.toContain('/v3/lease/keepalive');
  expect(await leases()).not.toContain(before);
  await keys.delete(next);
});

test('a bridge that removes an entry too late leaves its lease alone: it may have another entry by then', async () => {
  const { keys, append, dir } = await setUpRecorded();
  const proxy = await useProxy();
  const slow = useKeys(await useBridge({ endpoints: proxy.url }));
  const key = await append(VALUE);
  let next: Promise<string> | undefined;
  proxy.intercept(({ body }) => {
    if (next || !body.includes('request_delete_range')) return undefined;
    next = keys.delete(key).then(() => append(OTHER));
    return { hold: next };
  });
  expect(await rejection(slow.delete(key))).toBeInstanceOf(EtcdKeyNotFound);
  expect(proxy.requests.map(({ path }) => path)).not.toContain('/v3/kv/lease/revoke');
  expect(await entriesBelow(`${dir}/`)).toMatchObject([{ value: OTHER }]);
  await keys.delete(`${await next}`);
});

test('an append that is repeated makes one entry, with one lease', async () => {
  const { dir, keys, entries } = await setUp();
  const first = await keys.createInOrder(dir, VALUE, { ttl: 30 });
  const second = await keys.createInOrder(dir, VALUE, { ttl: 60 });
  expect(second.node.key).toBe(first.node.key);
  expect(await entries()).toHaveLength(1);
  expect((await keys.get(first.node.key)).node.ttl).toBeGreaterThan(30);
  await keys.delete(first.node.key);
});

test('an append that arrives late prolongs the entry, and does not put it on its own, older lease', async () => {
  const { dir, keys, leases } = await setUp();
  const { node } = await keys.createInOrder(dir, VALUE, { ttl: 30 });
  const before = await leases();
  await keys.createInOrder(dir, VALUE, { ttl: 30 });
  expect(await leases()).toEqual(before);
  await keys.delete(node.key);
});

test('an append that is carried out after the removal of its entry, which never expires, makes no entry', async () => {
  const { dir, entries, leases } = await setUp();
  const proxy = await useProxy();
  const keys = useKeys(await useBridge({ endpoints: proxy.url }));
  const { node } = await keys.createInOrder(dir, VALUE);
  expect(await leases()).toEqual([undefined]);
  await keys.delete(node.key);
  const append = proxy.requests.find(({ body }) => body.includes('"create_revision":"0"'));
  const message = JSON.parse(append?.body ?? '') as { success: [{ request_put: { lease: string } }] };
  const { lease } = message.success[0].request_put;
  await until(
    () => gateway('/lease/timetolive', { ID: lease }),
    ({ TTL }) => TTL === '-1',
  );
  expect(await gateway('/kv/txn', message)).toHaveProperty('code', 5);
  expect(await entries()).toEqual([]);
});

test('a bridge with one member sends an append once, and waits longer for the answer than until it would ask another member', async () => {
  const { dir, entries } = await setUp();
  const proxy = await useProxy();
  const keys = useKeys(await useBridge({ endpoints: proxy.url }));
  const isAppend = ({ path, body }: ProxiedRequest): boolean =>
    path.endsWith('/kv/txn') && body.includes('request_put');
  const answerAfter = proxy.next(isAppend, 'arrived').then(() => sleep(1500));
  proxy.intercept(first(1, isAppend, { answerAfter }));
  const { node } = await keys.createInOrder(dir, VALUE, { ttl: 30 });
  expect(proxy.requests.filter(isAppend)).toHaveLength(1);
  expect(await entries()).toMatchObject([{ value: VALUE }]);
  await keys.delete(node.key);
});

test('a value with the uuid of another entry is refused, and leaves that entry alone', async () => {
  const { dir, keys, entries } = await setUp();
  const { node } = await keys.createInOrder(dir, VALUE, { ttl: 30 });
  expect(await rejection(keys.createInOrder(dir, `shared:${VALUE}`, { ttl: 30 }))).toBeInstanceOf(EtcdAlreadyExist);
  expect(await entries()).toMatchObject([{ value: VALUE }]);
  await keys.delete(node.key);
});

test('two entries without a value are two entries', async () => {
  const { dir, keys, entries } = await setUp();
  for (let i = 0; i < 2; i += 1) await keys.createInOrder(dir, '', { ttl: 30 });
  expect(await entries()).toHaveLength(2);
});

test('a listing shows the entries of etcd v3 in the order of their creation, also those of Go', async () => {
  const { name, dir, keys } = await setUp();
  const held = await useLocks('v3').acquire(name);
  await gateway('/kv/put', { key: base64(`${dir}/694d`), value: '' });
  const { node } = await keys.createInOrder(dir, VALUE, { ttl: 30 });
  const listing = await keys.get(dir, { recursive: true, sorted: true, quorum: true });
  expect(listing.node.nodes.map(({ value }) => value?.slice(0, 32) ?? '')).toEqual([held.uuid, '', VALUE]);
  expect(listing.index).toBeGreaterThanOrEqual(node.createdIndex);
  await held.release();
  await gateway('/kv/deleterange', { key: base64(`${dir}/694d`) });
  await keys.delete(node.key);
  expect((await keys.get(dir, { recursive: true })).node.nodes).toEqual([]);
});

test('the listing of all locks has a directory for each', async () => {
  const { name, dir, keys } = await setUp();
  const { node } = await keys.createInOrder(`${dir}/inner`, VALUE, { ttl: 30 });
  const all = await keys.get('/_locks', { recursive: true });
  const own = all.node.nodes.find(({ key }) => key === `/_locks/${name}`);
  expect(own?.nodes).toMatchObject([{ key: `${dir}/inner`, dir: true, nodes: [{ key: node.key, value: VALUE }] }]);
  await keys.delete(node.key);
});

test.each([
  ['the same TTL', 30, 30],
  ['another TTL', 30, 60],
  ['no TTL any more', 30, null],
  ['a TTL for the first time', null, 30],
])('a renewal with %s keeps the entry', async (_, before, after) => {
  const { dir, keys, entries } = await setUp();
  const { node } = await keys.createInOrder(dir, VALUE, { ttl: before });
  const [old] = await entries();
  expect(await keys.set(node.key, VALUE, { ttl: after })).toMatchObject({ action: 'set', node: { value: VALUE } });
  const [entry] = await entries();
  expect(entry).toMatchObject({ key: old?.key, rank: old?.rank });
  if (after === null) expect(entry?.ttl).toBeUndefined();
  else expect(entry?.ttl).toBeGreaterThan(after - 10);
  await keys.delete(node.key);
});

test('an entry that has expired is not created again by its renewal', async () => {
  const { dir, keys, entries } = await setUp();
  const { node } = await keys.createInOrder(dir, VALUE, { ttl: 2 });
  await until(entries, ({ length }) => length === 0);
  expect(await rejection(keys.set(node.key, VALUE, { ttl: 2 }))).toBeInstanceOf(EtcdKeyNotFound);
  expect(await rejection(keys.delete(node.key))).toBeInstanceOf(EtcdKeyNotFound);
  expect(await entries()).toEqual([]);
});

test('the entry of a native client is renewed without its lease, which may have other entries', async () => {
  const { name, keys, entries } = await setUp();
  const locks = useLocks('v3');
  const [held, other] = [await locks.acquire(name), await locks.acquire(freshName())];
  const [entry] = await entries();
  const key = `/_locks/${name}/${String(entry?.rank).padStart(20, '0')}`;
  await keys.set(key, entry?.value, { ttl: 40 });
  expect((await entries())[0]?.ttl).toBeGreaterThan(30);
  await keys.delete(key);
  other.assertHeld();
  expect(await other.release()).toBe(true);
  await held.release();
});

test.each([1, 3])('a removal is repeated if the entry has changed since it was read: %d times', async (times) => {
  const { dir, entries } = await setUp();
  const proxy = await useProxy();
  const keys = useKeys(await useBridge({ endpoints: proxy.url }));
  const { node } = await keys.createInOrder(dir, VALUE, { ttl: 30 });
  let changes = 0;
  proxy.intercept(({ body }) => {
    if (!body.includes('request_delete_range') || changes === times) return undefined;
    changes += 1;
    const [key, value] = [base64(`${dir}/${VALUE}`), base64(`changed ${changes}`)];
    return { hold: gateway('/kv/put', { key, value, ignore_lease: true }) };
  });
  const removal = keys.delete(node.key);
  if (times === 1) {
    expect(await removal).toMatchObject({ action: 'delete', prevNode: { value: 'changed 1' } });
    expect(await entries()).toEqual([]);
  } else {
    expect(await rejection(removal)).toBeInstanceOf(EtcdCompareFailed);
    expect(await entries()).toMatchObject([{ value: 'changed 3' }]);
    await keys.delete(node.key);
  }
});

test.each(['carried out', 'not carried out'])(
  'requests that a member refuses during an election are repeated, and make one entry with one lease: %s',
  async (outcome) => {
    const { dir, entries } = await setUp();
    const proxy = await useProxy();
    const keys = useKeys(await useBridge({ endpoints: proxy.url }));
    let refusals = 0;
    const refuse = (): void => {
      refusals = 2;
    };
    const late = outcome === 'carried out' ? Promise.resolve() : new Promise<never>(() => {});
    const message = 'etcdserver: leader changed';
    proxy.intercept(({ path }) => {
      if (refusals === 0 || !path.startsWith('/v3/kv/') || path.includes('/lease/')) return undefined;
      refusals -= 1;
      return { late, status: 503, body: { error: message, message, code: 14 } };
    });
    refuse();
    const { node } = await keys.createInOrder(dir, VALUE, { ttl: 30 });
    refuse();
    expect((await keys.get(node.key)).node.value).toBe(VALUE);
    refuse();
    await keys.set(node.key, VALUE, { ttl: 60 });
    refuse();
    const removed = keys.watch(node.key, { timeout: Number.POSITIVE_INFINITY });
    await until(
      () => refusals,
      (left) => left === 0,
    );
    const granted = proxy.requests.flatMap(({ path, body }) => (path.endsWith('/grant') ? [JSON.parse(body).ID] : []));
    await keys.delete(node.key);
    expect(await removed).toMatchObject({ action: 'delete' });
    expect(await entries()).toEqual([]);
    for (const lease of granted)
      await until(
        () => gateway('/lease/timetolive', { ID: lease }),
        ({ TTL }) => TTL === '-1',
      );
  },
);

/** An entry without TTL whose append a bridge did not finish, as another bridge shows it. */
async function setUpUnfinished() {
  const [name, proxy] = [freshName(), await useProxy()];
  const dir = `/_locks/${name}`;
  const failing = useKeys(await useBridge({ endpoints: proxy.url }));
  proxy.intercept(({ path, body }) =>
    path.endsWith('/kv/txn') && body.includes('"MOD"') ? { refuse: true } : undefined,
  );
  await rejection(failing.createInOrder(dir, VALUE));
  const [entry] = await entriesBelow(`${dir}/`);
  const leases = async () =>
    ((await gateway('/kv/range', { key: base64(`${dir}/${VALUE}`) })).kvs ?? []).map(({ lease }) => lease);
  expect(await leases()).toEqual([expect.any(String)]);
  return { dir, key: `${dir}/${String(entry?.rank).padStart(20, '0')}`, keys: useKeys(await useBridge()), leases };
}

test.each(['a listing', 'a read of the entry'])(
  'an entry without TTL whose append was not finished gets none by %s: its client may find it, and hold the lock',
  async (read) => {
    const { dir, key, keys, leases } = await setUpUnfinished();
    await (read === 'a listing' ? keys.get(dir, { recursive: true }) : keys.get(key));
    expect(await leases()).toEqual([undefined]);
    await keys.delete(key);
  },
);

test('an entry whose append was not finished keeps the TTL that its client gives it', async () => {
  const { dir, key, keys, leases } = await setUpUnfinished();
  // That of its first lease.
  await keys.set(key, VALUE, { ttl: 60 });
  await keys.get(dir, { recursive: true });
  expect(await leases()).toEqual([expect.any(String)]);
  await keys.delete(key);
});

test('the number 0 names no entry', async () => {
  const { dir, keys, entries } = await setUp();
  const { node } = await keys.createInOrder(dir, VALUE, { ttl: 30 });
  const none = `${dir}/00000000000000000000`;
  await rejection(keys.delete(none));
  expect(await rejection(keys.set(none, VALUE, { ttl: 30 }))).toBeInstanceOf(EtcdRootReadOnly);
  expect(await entries()).toHaveLength(1);
  await keys.delete(node.key);
});

test('conditions are compared with the entry', async () => {
  const { dir, keys } = await setUp();
  const { node } = await keys.createInOrder(dir, VALUE, { ttl: 30 });
  const wrong = [{ prevValue: 'another' }, { prevIndex: node.modifiedIndex + 1 }];
  for (const conditions of wrong) {
    expect(await rejection(keys.set(node.key, VALUE, { ttl: 30, ...conditions }))).toBeInstanceOf(EtcdCompareFailed);
    expect(await rejection(keys.delete(node.key, conditions))).toBeInstanceOf(EtcdCompareFailed);
  }
  const right = { prevValue: VALUE, prevIndex: node.modifiedIndex };
  expect(await keys.delete(node.key, right)).toMatchObject({ action: 'compareAndDelete' });
});

test('a wait ends by the removal of the entry, also if that was before', async () => {
  const { dir, keys } = await setUp();
  const { node } = await keys.createInOrder(dir, VALUE, { ttl: 30 });
  const started: number[] = [];
  const waiting = keys.watch(node.key, { after: node.modifiedIndex, started: (index) => started.push(index) });
  await until(
    () => started.length,
    (count) => count === 1,
  );
  await keys.delete(node.key);
  const event = await waiting;
  expect(event).toMatchObject({ action: 'delete', node: { key: node.key } });
  expect(event?.index).toBeGreaterThan(node.modifiedIndex);
  expect(await keys.watch(node.key, { after: node.modifiedIndex })).toMatchObject({ action: 'delete' });
});

test('a wait for a directory reports what happens in it, from the index on', async () => {
  const { dir, keys } = await setUp();
  const { node } = await keys.createInOrder(dir, VALUE, { ttl: 30 });
  await keys.delete(node.key);
  const created = await keys.watch(dir, { recursive: true, after: node.createdIndex - 1 });
  expect(created).toMatchObject({ action: 'create', node: { key: node.key, value: VALUE } });
  const removed = await keys.watch(dir, { recursive: true, after: created?.index });
  expect(removed).toMatchObject({ action: 'delete', node: { key: node.key } });
});

test('a wait for a directory in which several entries are removed at once ends without an event: the next wait would miss the others', async () => {
  const { dir, keys, entries } = await setUp();
  for (const value of [VALUE, OTHER]) await keys.createInOrder(dir, value, { ttl: 30 });
  const { index } = await keys.get(dir, { recursive: true });
  const removals = (await entries()).map(({ key }) => ({ request_delete_range: { key: base64(key) } }));
  await gateway('/kv/txn', { success: removals });
  expect(removals).toHaveLength(2);
  expect(await keys.watch(dir, { recursive: true, after: index })).toBeUndefined();
});

test('a wait for events that were compacted ends with code 401', async () => {
  const etcd = await startEtcd();
  onTestFinished(() => etcd.stop());
  const keys = useKeys(await useBridge({ endpoints: etcd.url }));
  const { node } = await keys.createInOrder('/_locks/compacted', VALUE, { ttl: 30 });
  await keys.set(node.key, VALUE, { ttl: 40 });
  const { index } = await keys.get('/_locks/compacted', { recursive: true });
  await gateway('/kv/compaction', { revision: String(index) }, etcd.url);
  const ended = rejection(keys.watch('/_locks/compacted', { recursive: true, after: node.createdIndex - 1 }));
  expect(await ended).toBeInstanceOf(EtcdEventIndexCleared);
});

test('what no lock needs is refused, and nothing is done', async () => {
  const { dir, keys, entries } = await setUp();
  const { node } = await keys.createInOrder(dir, VALUE, { ttl: 30 });
  const refused: readonly (() => Promise<unknown>)[] = [
    () => keys.set('/elsewhere', 'x'),
    () => keys.get('/elsewhere'),
    () => keys.get('/'),
    () => keys.createInOrder('/elsewhere', 'x'),
    () => keys.createInOrder('/_locks', 'x'),
    () => keys.set(`${dir}/chosen`, 'x'),
    () => keys.set(node.key, 'another value', { ttl: 30 }),
    () => keys.set(node.key, VALUE, { ttl: 30, prevExist: false }),
    () => keys.createInOrder(dir, undefined, { dir: true }),
  ];
  for (const call of refused) {
    const error = await rejection(call());
    expect(error, String(call)).toBeInstanceOf(EtcdRootReadOnly);
    expect(error).toHaveProperty('message', expect.stringContaining('a bridge serves only locks'));
  }
  expect(await rejection(keys.createInOrder(dir, 'x', { ttl: 0 }))).toBeInstanceOf(EtcdValueError);
  expect(await rejection(keys.delete(dir, { recursive: true }))).toBeInstanceOf(EtcdDirNotEmpty);
  expect(await rejection(keys.delete(dir))).toBeInstanceOf(EtcdNotFile);
  expect(await entries()).toHaveLength(1);
  await keys.delete(node.key);
  expect(await rejection(keys.delete(dir, { dir: true }))).toBeInstanceOf(EtcdKeyNotFound);
});

test('an etcd that cannot be reached is an error of etcd v2', async () => {
  const etcd = await startEtcd();
  const keys = useKeys(await useBridge({ endpoints: etcd.url, readTimeout: 1 }));
  await etcd.stop();
  const error = await rejection(keys.get('/_locks/any', { recursive: true }));
  expect(error).toBeInstanceOf(EtcdException);
  expect(error).toMatchObject({ errorCode: 300 });
});

test('the pages about the server name the bridges that clients should use', async () => {
  const advertise = ['http://bridge-1:4001', 'http://bridge-2:4001'];
  const { url } = await useBridge({ advertise });
  expect(await (await fetch(`${url}/v2/machines`)).text()).toBe(advertise.join(', '));
  expect(await (await fetch(`${url}/version`)).json()).toHaveProperty('etcdserver');
});

test('bad options are refused before anything is started', async () => {
  for (const lockPrefix of ['', '/', '/_locks/', '/a//b', '/..'])
    expect(await rejection(Bridge.start({ endpoints: inject('etcd'), lockPrefix }))).toBeInstanceOf(RangeError);
  expect(await rejection(Bridge.start({ port: 70_000 }))).toBeInstanceOf(RangeError);
  expect(await rejection(Bridge.start({ advertise: ['nowhere'] }))).toBeInstanceOf(RangeError);
  for (const wrong of ['http://bridge-1:4001', []] as unknown as string[][])
    expect(await rejection(Bridge.start({ advertise: wrong }))).toHaveProperty(
      'message',
      expect.stringMatching(/^advertise must be a list of URLs, got /),
    );
  expect(await rejection(Bridge.start({ lsiten: 1 } as object))).toBeInstanceOf(TypeError);
});

test('a renewal never reports a TTL that another bridge has replaced in between', async () => {
  const [proxy, other] = [await useProxy(), await useProxy()];
  other.intercept(({ path }) => (path.endsWith('/lease/revoke') ? { silent: true } : undefined));
  const slow = useKeys(await useBridge({ endpoints: proxy.url }));
  const keys = useKeys(await useBridge({ endpoints: other.url }));
  const { node } = await keys.createInOrder(`/_locks/${freshName()}`, 'v', { ttl: 60 });
  const isKeepAlive = ({ path }: ProxiedRequest) => path.endsWith('/lease/keepalive');
  const late = gate();
  proxy.intercept((request) => (isKeepAlive(request) ? { hold: late.opened } : undefined));
  const arrived = proxy.next(isKeepAlive, 'arrived');
  const renewal = slow.set(node.key, 'v', { ttl: 60 });
  await arrived;
  await keys.set(node.key, 'v', { ttl: 5 });
  late.open();
  const { node: said } = await renewal;
  expect((await keys.get(node.key)).node.ttl).toBeGreaterThan((said.ttl ?? 0) - 30);
});

test('a value that is not UTF-8 is refused, and leaves no entry', async () => {
  const dir = `/_locks/${freshName()}`;
  const { url } = await useBridge();
  for (const body of ['value=%FF', 'value=%FE&ttl=60']) {
    const headers = { 'content-type': 'application/x-www-form-urlencoded' };
    const answer = await fetch(`${url}/v2/keys${dir}`, { method: 'POST', body, headers });
    expect(await answer.json()).toMatchObject({ errorCode: 107 });
  }
  expect(await entriesBelow(`${dir}/`)).toEqual([]);
});

test('an entry of another client whose key and value are not UTF-8 is listed, polled, renewed and removed', async () => {
  const { dir, keys } = await setUp();
  const key = Buffer.concat([Buffer.from(`${dir}/`), Buffer.of(0xff)]).toString('base64');
  await gateway('/kv/put', { key, value: Buffer.of(0x76, 0xfe).toString('base64') });
  const present = async () => ((await gateway('/kv/range', { key })).kvs ?? []).length === 1;
  const { node } = await keys.get(dir, { recursive: true });
  const [entry] = node.nodes;
  expect(entry?.value).toBe('v\ufffd');
  const at = entry?.key ?? '';
  const renewed = await keys.set(at, undefined, { ttl: 60, refresh: true, prevExist: true });
  expect(renewed.node.ttl).toBe(60);
  // The client has another value than the store.
  expect(await rejection(keys.delete(at, { prevValue: 'v\ufffd' }))).toBeInstanceOf(EtcdCompareFailed);
  expect(await present()).toBe(true);
  const begun = gate();
  const removed = keys.watch(at, { after: renewed.node.modifiedIndex, started: begun.open });
  await begun.opened;
  await keys.delete(at);
  expect(await present()).toBe(false);
  expect(await removed).toMatchObject({ action: 'delete', node: { key: at } });
});
