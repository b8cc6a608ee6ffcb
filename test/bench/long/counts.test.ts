import { beforeAll, expect, test } from 'vitest';
import { startNode } from '../../support/script.ts';

type Kinds = Readonly<Record<string, number>>;

interface Cycle {
  readonly requests: number;
  readonly trips: number;
  readonly kinds: Kinds;
  /** Connections opened after the first cycle. */
  readonly further: number;
}

interface Counts {
  readonly cycles: Readonly<Record<string, Cycle>>;
  readonly handOver: Readonly<Record<string, { readonly kinds: Kinds }>>;
  readonly drain: Readonly<Record<string, Readonly<Record<number, { readonly kinds: Kinds }>>>>;
  readonly waiters: {
    readonly keys: number;
    readonly sockets: number;
    readonly served: number;
    readonly inOrder: boolean;
    readonly requestsEach: number;
  };
  readonly idle: {
    readonly thirds: number;
    readonly holder: { readonly kinds: Kinds };
    readonly waiter: { readonly kinds: Kinds };
  };
}

let counts: Counts;

beforeAll(async () => {
  const { code, stdout, stderr } = await startNode(['bench/counts.mjs']).result;
  if (code !== 0) throw new Error(stderr);
  counts = JSON.parse(stdout);
}, 180_000);

test.each(['lock', 'manager'])(
  'an uncontended cycle of a %s is three requests in two round trips on open connections',
  (face) => {
    expect(counts.cycles[face]).toMatchObject({
      requests: 3,
      trips: 2,
      kinds: { append: 1, read: 1, removal: 1 },
      further: 0,
    });
  },
);

test("python-etcd's cycle is four requests in four round trips", () => {
  expect(counts.cycles['python']).toMatchObject({ requests: 4, trips: 4 });
});

test('the floors send the requests in their names, each in its own round trip', () => {
  expect(counts.cycles['writes']).toMatchObject({ requests: 2, trips: 2, kinds: { append: 1, removal: 1 } });
  expect(counts.cycles['requests']).toMatchObject({ requests: 3, trips: 3 });
});

test.each(['lock', 'manager'])('a hand-over between two clients of a %s is a removal and one listing', (face) => {
  expect(counts.handOver[face]?.kinds).toEqual({ removal: 1, read: 1 });
});

test.each([5, 30])('a queue of %i drains with a removal and one listing per waiter', (size) => {
  expect(counts.drain['lock']?.[size]?.kinds).toEqual({ removal: size + 1, read: size });
});

test('300 waiters of one manager share one key and at most two sockets, and get the lock in the order of arrival', () => {
  expect(counts.waiters).toMatchObject({ keys: 1, served: 300, inOrder: true });
  expect(counts.waiters.sockets).toBeLessThanOrEqual(2);
  expect(counts.waiters.requestsEach).toBeLessThanOrEqual(3.1);
});

test('a held lock costs one small request per TTL/3', () => {
  expect(counts.idle.holder.kinds).toEqual({ renewal: counts.idle.thirds });
});

test('a waiting request costs a renewal and at most one poll per TTL/3, and at most four listings per TTL', () => {
  const { thirds, waiter } = counts.idle;
  const { renewal, poll = 0, read = 0, ...others } = waiter.kinds;
  expect(renewal).toBe(thirds);
  expect(others).toEqual({});
  expect(poll).toBeLessThanOrEqual(thirds);
  // With this TTL, a listing is sent after three quarters of the longest poll (TTL/3).
  expect(read).toBeLessThanOrEqual(Math.ceil((thirds * 4) / 3) + 1);
});
