import { expect, test } from 'vitest';
import { kindOf } from '../../../src/cli/live/kinds.ts';
import { type LiveLock, LiveModel, liveIn, waitsFor } from '../../../src/cli/live/model.ts';
import { type KeyChange, type LockQueue, type ParsedEntry, parsed } from '../../../src/recipe/survey.ts';

const ENDED = 'c0a8a1d2b3c4d5e6f708192a3b4c5d6e';

const entry = (name: string, rank: number, value: string, ttl?: number): ParsedEntry =>
  parsed(name, { key: `/_locks/${name}/${String(rank).padStart(20, '0')}`, value, rank: BigInt(rank), ttl });

const queue = (name: string, ...entries: readonly ParsedEntry[]): LockQueue => ({
  name,
  path: `/_locks/${name}`,
  entries,
  ignored: [],
});

const survey = (...queues: readonly LockQueue[]) => ({ queues, index: 1, clusterId: 'c' });
const written = (one: ParsedEntry): KeyChange => ({ how: 'written', key: one.key, entry: one, index: 2 });
const removed = (one: ParsedEntry, how: 'removed' | 'expired' = 'removed'): KeyChange => ({
  how,
  key: one.key,
  index: 3,
});

const model = (options = {}): LiveModel => new LiveModel({ api: 'v2', prefix: '', ...options });
const only = (live: LiveModel): LiveLock => {
  const [lock, ...others] = live.locks;
  if (!lock || others.length > 0) throw new Error(`expected one lock, got ${live.locks.length}`);
  return lock;
};
const history = (live: LiveModel): string[] => live.history.map(({ kind, entry: of }) => `${kind} ${of.uuid}`);

const A = entry('x', 1, 'a', 30);
const B = entry('x', 2, 'b', 30);

test('a listing shows holders and waiters, and not since when they are there', () => {
  const live = model();
  live.listed(survey(queue('x', A, B), queue('unused')), 1000);
  const { holders, waiters } = only(live);
  expect(holders).toMatchObject([{ entry: A, seenAt: 1000, queuedAt: undefined, heldAt: undefined }]);
  expect(waiters).toMatchObject([{ entry: B, seenAt: 1000, ttl: { left: 30, at: 1000 } }]);
  expect(history(live)).toEqual([]);
});

test('what is seen has a time: since when an entry waits, and since when it holds', () => {
  const live = model();
  live.listed(survey(queue('x', A)), 1000);
  live.changed(written(B), 2000);
  live.changed(removed(A), 5000);
  expect(only(live)).toMatchObject({ holders: [{ entry: B, queuedAt: 2000, heldAt: 5000 }], waiters: [] });
  expect(history(live)).toEqual(['queued b', 'released a', 'acquired b']);
  live.changed(removed(B, 'expired'), 6000);
  expect(live.locks).toEqual([]);
  expect(history(live).at(-1)).toBe('expired b');
});

test('an entry of a LockManager says since when it waits, also before the first listing', () => {
  const since = Date.UTC(2026, 10, 28);
  const uuid = `${since.toString(16).padStart(12, '0')}7c0a8a1d2b3c4d5e6f70`;
  const live = model();
  live.listed(survey(queue('x', A, entry('x', 2, uuid))), since + 90_000);
  expect(only(live).waiters).toMatchObject([{ queuedAt: since, kind: 'this package' }]);
});

test('a renewal is seen by a TTL that is longer than before, and is no event', () => {
  const live = model();
  live.listed(survey(queue('x', A)), 0);
  live.read(queue('x', { ...A, ttl: 20 }), 10_000);
  expect(only(live).holders[0]).toMatchObject({ ttl: { left: 20, at: 10_000 }, renewedAt: undefined });
  live.read(queue('x', { ...A, ttl: 29 }), 20_000);
  expect(only(live).holders[0]).toMatchObject({ renewedAt: 20_000 });
  live.changed(written({ ...A, ttl: 30 }), 25_000);
  expect(only(live).holders[0]).toMatchObject({ ttl: { left: 30, at: 25_000 }, renewedAt: 25_000 });
  expect(history(live)).toEqual([]);
});

test('an event of etcd v3 does not say when the entry expires', () => {
  const live = model({ api: 'v3' });
  live.listed(survey(), 0);
  live.changed(written({ ...A, ttl: undefined }), 1000);
  expect(only(live).holders[0]?.ttl).toBeUndefined();
  expect(live.read(queue('x', { ...A, ttl: 17 }), 2000)).toBe(true);
  expect(only(live).holders[0]?.ttl).toEqual({ left: 17, at: 2000 });
});

test('a read that differs from the model is not taken over: changes were missed', () => {
  const live = model();
  live.listed(survey(queue('x', A)), 0);
  expect(live.read(queue('x', A, B), 1000)).toBe(false);
  expect(only(live).waiters).toEqual([]);
  expect(live.read(queue('y'), 1000)).toBe(true);
});

test('whom an entry waits for: the nearest one before it, and with a limit how many must go', () => {
  const live = model();
  const [one, two, three] = [1, 2, 3].map((rank) => entry('x', rank, `limit:2:u${rank}`)) as [
    ParsedEntry,
    ParsedEntry,
    ParsedEntry,
  ];
  live.listed(survey(queue('x', one, two, three)), 0);
  const lock = only(live);
  expect(lock.holders.map((each) => waitsFor(lock, each))).toEqual([undefined, undefined]);
  expect(lock.waiters.map((each) => waitsFor(lock, each))).toMatchObject([{ nearest: two, count: 1 }]);
});

test('an outage keeps what was seen, with its time, and ends with the next listing, which shows what is gone', () => {
  const live = model();
  live.listed(survey(queue('x', A, B), queue('y', entry('y', 4, 'd'))), 1000);
  live.failed('no answer');
  live.failed('still no answer');
  expect(live.outage).toEqual({ since: 1000, message: 'still no answer' });
  expect(live.locks.map(({ name }) => name)).toEqual(['x', 'y']);
  live.listed(survey(queue('x', B, entry('x', 3, 'c'))), 9000);
  expect(live.outage).toBeUndefined();
  expect(only(live)).toMatchObject({
    holders: [{ entry: B, heldAt: undefined, seenAt: 1000 }],
    waiters: [{ seenAt: 9000, queuedAt: undefined }],
  });
  expect(history(live).sort()).toEqual(['acquired b', 'gone a', 'gone d', 'queued c']);
});

test('another cluster has other locks, and their entries are not taken for changes', () => {
  const live = model();
  live.listed(survey(queue('x', A)), 1000);
  live.listed({ queues: [queue('y', entry('y', 1, 'z'))], index: 1, clusterId: 'other' }, 2000);
  expect(only(live).name).toBe('y');
  expect(history(live)).toEqual([]);
});

test('the removal of a directory removes the locks in it, and those below', () => {
  const live = model();
  live.listed(
    survey(queue('a', entry('a', 1, 'u1')), queue('a/b', entry('a/b', 2, 'u2')), queue('ab', entry('ab', 3, 'u3'))),
    0,
  );
  live.changed({ how: 'removed', key: '/_locks/a', index: 4 }, 1000);
  expect(live.locks.map(({ name }) => name)).toEqual(['ab']);
  expect(history(live)).toEqual(['released u1', 'released u2']);
});

test('only locks with the prefix are shown, and an entry that is no entry of a lock changes nothing', () => {
  const live = model({ prefix: 'jobs/' });
  live.listed(survey(), 0);
  live.changed(written(A), 1);
  live.changed({ how: 'written', key: '/_locks/jobs/odd', index: 3 }, 2);
  live.changed(written(entry('jobs/a', 5, 'u')), 3);
  expect(live.locks.map(({ name }) => name)).toEqual(['jobs/a']);
});

test('the memory is bounded: of too many locks the rest is counted, and only the last events are kept', () => {
  const live = model({ mostLocks: 3 });
  live.listed(survey(...Array.from({ length: 5 }, (_, at) => queue(`l${at}`, entry(`l${at}`, at, 'u')))), 0);
  expect(live.locks).toHaveLength(3);
  expect(live.omitted).toBe(2);
  live.changed(removed(entry('l4', 4, 'u')), 1);
  expect(live.omitted).toBe(1);
  for (let at = 0; at < 500; at += 1) {
    live.changed(written(entry('l0', 10 + at, `w${at}`)), at);
    live.changed(removed(entry('l0', 10 + at, `w${at}`)), at);
  }
  expect(live.history.map(({ kind }) => kind)).toEqual(Array.from({ length: 500 }, () => ['queued', 'left']).flat());
  live.changed(written(entry('l0', 1000, 'last')), 1000);
  expect(live.history).toHaveLength(1000);
  expect(live.history.at(-1)?.entry.uuid).toBe('last');
});

test('10,000 locks with a waiter each are listed and changed in little time', () => {
  const live = model();
  const queues = Array.from({ length: 10_000 }, (_, at) =>
    queue(`l${at}`, entry(`l${at}`, at, 'u'), entry(`l${at}`, at + 20_000, 'w')),
  );
  live.listed(survey(...queues), 0);
  const startedAt = performance.now();
  for (let at = 0; at < 1000; at += 1) live.changed(removed(entry(`l${at}`, at, 'u')), at);
  // A scan of all locks for each change takes many times as long.
  expect(performance.now() - startedAt).toBeLessThan(2000);
  expect(live.locks.flatMap(liveIn)).toHaveLength(19_000);
});

test.each([
  ['v2', ENDED.replace(/^(.{12})./, '$14'), 'python-etcd'],
  ['v2', `${ENDED}@web-1%3A17`, 'this package'],
  ['v2', 'id:pod-1:u1', 'this package'],
  ['v2', `shared:${ENDED}`, 'this package'],
  ['v2', `limit:2:${ENDED}`, 'this package'],
  ['v2', `${ENDED}@via bridge`, 'bridge'],
  ['v3', ENDED, 'bridge'],
  ['v3', '', 'bridge'],
  ['v2', '', 'unknown'],
  ['v2', 'something', 'unknown'],
] as const)('on %s, an entry with the value "%s" was added by %s', (api, value, kind) => {
  expect(kindOf(entry('x', 1, value), api)).toBe(kind);
});

test('on v3, an entry of Go has no value, and no number as key', () => {
  expect(kindOf(parsed('x', { key: '/_locks/x/694d7a5c3f1e2b10', value: '', rank: 1n, ttl: undefined }), 'v3')).toBe(
    'Go',
  );
});
