import { describe, expect, test, vi } from 'vitest';
import { CALLS } from '../../../../src/server/v3/gateway/calls.ts';
import { decoderOf } from '../../../../src/server/v3/gateway/decode.ts';
import { requestIn } from '../../../../src/server/v3/gateway/requests.ts';
import { V3Member } from '../../../../src/server/v3/member.ts';
import type * as api from '../../../../src/server/v3/messages.ts';
import type { V3Store } from '../../../../src/server/v3/store/store.ts';
import { ManualClock } from '../../../support/manual-clock.ts';
import { ALL, deletion, newStore, put, range } from '../requests.ts';

const COMPACTED = 'etcdserver: mvcc: required revision has been compacted';

/** Writes one key so many times. */
function write(store: V3Store, times: number): void {
  for (let i = 0; i < times; i += 1) store.put(put({ key: 'a', value: String(i) }));
}

describe('the history of a store', () => {
  test('keeps at least as many changes as it was told, and at most a tenth more', () => {
    const store = newStore({ history: 100 });
    write(store, 110);
    expect(store.compacted).toBe(-1n);
    write(store, 1);
    expect(store.compacted).toBe(store.revision - 99n);
    expect(store.since(store.compacted, 1000)).toHaveLength(100);
    write(store, 1000);
    const kept = store.since(store.compacted, 1000).length;
    expect(kept).toBeGreaterThanOrEqual(100);
    expect(kept).toBeLessThanOrEqual(110);
  });

  test('keeps 10,000 changes by default', () => {
    const store = newStore();
    write(store, 11_001);
    expect(store.since(store.compacted, 20_000)).toHaveLength(10_000);
  });

  test('shows the past up to the oldest change that it keeps, and refuses to go back further', () => {
    const store = newStore({ history: 100 });
    write(store, 500);
    const oldest = store.compacted;
    expect(store.range(range({ key: 'a', revision: oldest })).kvs[0]?.mod_revision).toBe(oldest);
    expect(() => store.range(range({ key: 'a', revision: oldest - 1n }))).toThrow(COMPACTED);
    expect(() => store.since(oldest - 1n, 1)).toThrow(COMPACTED);
  });

  test('keeps at most 300 MiB of keys and values', () => {
    const store = newStore();
    const MIB = 2 ** 20;
    for (let i = 0; i < 500; i += 1) store.put(put({ key: 'a', value: 'x'.repeat(MIB) }));
    const kept = store.since(store.compacted, 1000).length;
    // Each change has a value before and after it.
    expect(kept).toBeGreaterThan(100);
    expect(kept).toBeLessThan(150);
  });

  test('keeps a revision with more changes than it may keep', () => {
    const store = newStore({ history: 10 });
    for (let i = 0; i < 10; i += 1) store.put(put({ key: `k${i}` }));
    write(store, 1);
    for (let i = 10; i < 40; i += 1) store.put(put({ key: `k${i}` }));
    const { deleted } = store.deleteRange(deletion(ALL));
    expect(deleted).toBe(41n);
    expect(store.since(store.revision, 1)[0]).toHaveLength(41);
  });
});

/** Returns how many entries are looked up in maps during a call. */
function lookUps(call: () => void): number {
  const { get } = Map.prototype;
  let count = 0;
  Map.prototype.get = function counted(key) {
    count += 1;
    return get.call(this, key);
  };
  try {
    call();
  } finally {
    Map.prototype.get = get;
  }
  return count;
}

test('a put with a lease does not visit the other keys of the lease', () => {
  const clusterId = 1n;
  const member = new V3Member({
    ...{ clusterId, memberId: 2n, name: '', clientURLs: [], version: '3.4', history: 10_000 },
    clock: new ManualClock(),
  });
  const { id } = member.store.leases.grant(0n, 60n);
  for (let i = 0; i < 1000; i += 1) member.store.put(put({ key: `${i}`, lease: id }));
  const keysOf = vi.spyOn(member.store.leases, 'keysOf');
  const status = vi.spyOn(member.store.leases, 'status');
  const message = requestIn(JSON.stringify({ key: 'YQ==', lease: `${id}` }));
  CALLS.get('/kv/put')?.answer(message, { member, token: undefined, decode: decoderOf('3.4') });
  expect(member.store.leases.status(id)?.keys).toHaveLength(1001);
  expect([keysOf, status].map(({ mock }) => mock.calls.length)).toEqual([0, 1]);
});

test('the ranges of a transaction may not find millions of keys', () => {
  const store = newStore();
  for (let i = 0; i < 40_000; i += 1) store.put(put({ key: `k${i}` }));
  const all = { request_range: range({ ...ALL, limit: 1n }) } as api.RequestOp;
  const txn = (ranges: number) => ({ compare: [], success: Array.from({ length: ranges }, () => all), failure: [] });
  expect(store.txn(txn(100)).responses).toHaveLength(100);
  expect(() => store.txn(txn(110))).toThrow('limit of 4194304 keys in the ranges of one transaction reached');
});

test('a read of the two newest keys does not visit removed ones', () => {
  const store = newStore();
  for (let i = 0; i < 5000; i += 1) {
    store.put(put({ key: `queue/${i}` }));
    if (i < 4990) store.deleteRange(deletion({ key: `queue/${i}` }));
  }
  const newest = range({ key: 'queue/', range_end: 'queue0', sort_target: 2, sort_order: 2, limit: 2n });
  expect(store.range(newest).kvs.map(({ key }) => key)).toEqual(['queue/4999', 'queue/4998']);
  expect(lookUps(() => store.range(newest))).toBeLessThanOrEqual(10);
});
