import { beforeAll, expect, test } from 'vitest';
import { startNode } from '../../support/script.ts';

type Kinds = Readonly<Record<string, number>>;

interface Counts {
  readonly cycles: Readonly<Record<string, { readonly kinds: Kinds; readonly further: number }>>;
  /** Per cycle. */
  readonly raftWrites: Readonly<Record<string, number>>;
  readonly handOver: Readonly<Record<string, { readonly kinds: Kinds }>>;
  readonly drain: Readonly<
    Record<string, Readonly<Record<number, { readonly appends: number; readonly kinds: Kinds }>>>
  >;
  readonly longQueue: Readonly<Record<number, { readonly kinds: Kinds; readonly bytesPerHandOver: number }>>;
  readonly held: { readonly thirds: number; readonly kinds: Kinds; readonly lost: number };
}

/** The holder's own watch of its entry begins after a quarter of a second: on a busy machine, during what is counted. */
const withoutWatchOfHolder = ({ poll, check, ...kinds }: Kinds = {}): Kinds => kinds;

let counts: Counts;

beforeAll(async () => {
  const { code, stdout, stderr } = await startNode(['bench/counts-v3.mjs']).result;
  if (code !== 0) throw new Error(stderr);
  counts = JSON.parse(stdout);
}, 300_000);

test.each(['manager', 'gateway'])(
  'an uncontended cycle of a %s on etcd v3 is two requests in two round trips on open connections',
  (id) => {
    expect(counts.cycles[id]).toMatchObject({
      requests: 2,
      trips: 2,
      kinds: { append: 1, removal: 1 },
      further: 0,
    });
  },
);

test('an uncontended cycle of a Lock on etcd v3 is three requests in three round trips: its lease is used again', () => {
  expect(counts.cycles['lock']).toMatchObject({
    requests: 3,
    trips: 3,
    kinds: { renewal: 1, append: 1, removal: 1 },
    further: 0,
  });
});

test('an uncontended cycle of python-etcd through a bridge is five requests to etcd: two for its append, one for each other of its requests', () => {
  expect(counts.cycles['bridge']).toMatchObject({
    requests: 5,
    kinds: { read: 2, renewal: 1, append: 1, removal: 1 },
    further: 0,
  });
});

test.each(['manager', 'lock', 'bridge', 'gateway', 'grpc'])(
  'an uncontended cycle of a %s on etcd v3 is two raft writes',
  (id) => {
    expect(counts.raftWrites[id]).toBe(2);
  },
);

test('a hand-over between two clients on etcd v3 is a removal and one read', () => {
  expect(withoutWatchOfHolder(counts.handOver['manager']?.kinds)).toEqual({ removal: 1, read: 1 });
});

test('the waiter of a hand-over on etcd v3 sends one request, also as a Lock', () => {
  expect(counts.handOver['lock']?.kinds).toMatchObject({ removal: 1, read: 1 });
});

test.each([5, 30])('a queue of %i on etcd v3 drains with a removal and one read per waiter', (size) => {
  const { appends = 0, kinds } = counts.drain['manager']?.[size] ?? {};
  const { revocation = 0, ...others } = withoutWatchOfHolder(kinds);
  expect(others).toEqual({ removal: size + 1, read: size });
  // On a busy machine, an append that is not answered within a second is repeated, and its lease is revoked in the end.
  expect(revocation).toBeLessThanOrEqual(appends - (size + 1));
});

test('a hand-over on etcd v3 costs the same bytes in a queue of 1,000 as in one of 11', () => {
  const { 11: short, 1000: long } = counts.longQueue;
  expect(withoutWatchOfHolder(long?.kinds)).toEqual(withoutWatchOfHolder(short?.kinds));
  expect(long?.bytesPerHandOver).toBeLessThanOrEqual(1.1 * (short?.bytesPerHandOver ?? 0));
});

test('1,000 held locks on etcd v3 cost one keep-alive and one read per TTL/3, and one list of the keys of the lease per TTL', () => {
  const { thirds, kinds, lost } = counts.held;
  expect(withoutWatchOfHolder(kinds)).toEqual({ renewal: thirds, confirmation: thirds, comparison: thirds / 3 });
  expect(lost).toBe(0);
});
