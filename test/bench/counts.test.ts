import { beforeAll, expect, inject, test } from 'vitest';
import { startNode } from '../support/script.ts';

type Kinds = Readonly<Record<string, number>>;

interface Cycle {
  readonly requests: number;
  readonly trips: number;
  readonly kinds: Kinds;
  /** Made after the first cycle. */
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
  const { code, stdout, stderr } = await startNode(['bench/counts.mjs', inject('etcd')]).result;
  if (code !== 0) throw new Error(stderr);
  counts = JSON.parse(stdout);
}, 180_000);

test.each(['lock', 'manager'])('an uncontended cycle is three requests of a %s on connections it has', (face) => {
  expect(counts.cycles[face]).toMatchObject({
    requests: 3,
    trips: 2,
    kinds: { append: 1, read: 1, removal: 1 },
    further: 0,
  });
});

test("python-etcd's cycle is four requests, each waiting for the one before", () => {
  expect(counts.cycles['python']).toMatchObject({ requests: 4, trips: 4 });
});

test('the floors are what their names say', () => {
  expect(counts.cycles['writes']).toMatchObject({ requests: 2, trips: 2, kinds: { append: 1, removal: 1 } });
  expect(counts.cycles['requests']).toMatchObject({ requests: 3, trips: 3 });
});

test.each(['lock', 'manager'])('a hand-over between two of a %s is a removal and one look at the queue', (face) => {
  expect(counts.handOver[face]?.kinds).toEqual({ removal: 1, read: 1 });
});

test.each([5, 30])('a queue of %i drains with a removal and one look at the queue for each', (size) => {
  expect(counts.drain['lock']?.[size]?.kinds).toEqual({ removal: size + 1, read: size });
});

test('many waiters of one manager are one key and few sockets, and are served in the order they came', () => {
  expect(counts.waiters).toMatchObject({ keys: 1, served: 300, inOrder: true });
  expect(counts.waiters.sockets).toBeLessThanOrEqual(2);
  expect(counts.waiters.requestsEach).toBeLessThanOrEqual(3.1);
});

test('a held lock costs one small request per TTL/3', () => {
  expect(counts.idle.holder.kinds).toEqual({ renewal: counts.idle.thirds });
});

test('a lock waited for costs a renewal per TTL/3, a poll per cap, and looks at the queue within it', () => {
  const { thirds, waiter } = counts.idle;
  const { renewal, poll = 0, read = 0, ...others } = waiter.kinds;
  expect(renewal).toBe(thirds);
  expect(others).toEqual({});
  expect(poll).toBeLessThanOrEqual(thirds);
  // With such a TTL a look comes after three quarters of the cap.
  expect(read).toBeLessThanOrEqual(Math.ceil((thirds * 4) / 3) + 1);
});
