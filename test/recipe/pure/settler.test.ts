import { expect, test, vi } from 'vitest';
import { PendingWork } from '../../../src/base/pending-work.ts';
import { EtcdConnectionFailed, EtcdInsufficientPermissions } from '../../../src/errors.ts';
import { Settler, SettlersAtWork, type Unsettled } from '../../../src/recipe/settler.ts';
import { useStillClock } from '../../support/still-clock.ts';

const pass = (seconds: number): Promise<unknown> => vi.advanceTimersByTimeAsync(seconds * 1000);

/** An entry that owes something until a try succeeds. */
class Entry implements Unsettled {
  readonly id: string;
  readonly key = '/l/1';
  clusterId: string | undefined;
  pending = new PendingWork(() => new Error('closed'));
  readonly retryEvery = 2;
  readonly settler: Settler<Entry>;
  isOwed = true;
  isUrgent = true;
  hasExpired = false;
  /** Errors of the next tries; undefined: it succeeds. */
  outcomes: (Error | undefined)[] = [];
  tries = 0;

  constructor(atWork: SettlersAtWork<Entry>, id = '1') {
    this.id = id;
    this.settler = new Settler(this, atWork);
  }

  hasDuty(isClosing: boolean): boolean {
    return this.isOwed && (this.isUrgent || !isClosing);
  }

  async settle(): Promise<void> {
    this.tries += 1;
    const error = this.outcomes.shift();
    if (error) throw error;
    this.isOwed = false;
  }

  expiry(): () => boolean {
    return () => this.hasExpired;
  }
}

function setUp() {
  useStillClock();
  const atWork = new SettlersAtWork<Entry>();
  return { atWork, entry: new Entry(atWork) };
}

const failed = () => new EtcdConnectionFailed('no answer');
const refused = () => new EtcdInsufficientPermissions('not allowed');

test('a settler without work does not begin', () => {
  const { entry } = setUp();
  entry.isOwed = false;
  entry.settler.start();
  expect(entry.settler.isAtWork).toBe(false);
});

test('a settler tries again until it has succeeded, at least every two seconds', async () => {
  const { entry } = setUp();
  entry.outcomes = Array.from({ length: 10 }, failed);
  entry.settler.start();
  await pass(10);
  expect(entry.tries).toBeGreaterThan(5);
  expect(entry.settler.isAtWork).toBe(true);
  await pass(20);
  expect([entry.tries, entry.isOwed, entry.settler.isAtWork]).toEqual([11, false, false]);
});

test('a settler that is refused ends once the entry has expired', async () => {
  const { entry } = setUp();
  entry.outcomes = Array.from({ length: 100 }, refused);
  entry.settler.start();
  await pass(10);
  expect(entry.settler.isAtWork).toBe(true);
  entry.hasExpired = true;
  await pass(2);
  expect([entry.isOwed, entry.settler.isAtWork]).toEqual([true, false]);
});

test('a settler whose tries fail continues although the entry has expired: it may be there again', async () => {
  const { entry } = setUp();
  entry.hasExpired = true;
  entry.outcomes = [failed(), failed()];
  entry.settler.start();
  await pass(10);
  expect([entry.tries, entry.isOwed]).toEqual([3, false]);
});

test('a settler that is stopped makes no further try', async () => {
  const { entry } = setUp();
  entry.settler.start();
  await entry.settler.stop(() => expect.unreachable());
  await pass(10);
  expect([entry.tries, entry.settler.isAtWork]).toEqual([0, false]);
});

test('closing the client waits for urgent work, and names its key if that does not succeed in time', async () => {
  const { entry } = setUp();
  entry.outcomes = Array.from({ length: 100 }, failed);
  entry.settler.start();
  const left = entry.pending.settle(3);
  await pass(3);
  expect(await left).toEqual(['/l/1']);
});

test('closing the client tries once to do work that is not urgent', async () => {
  const { entry } = setUp();
  entry.isUrgent = false;
  entry.outcomes = [failed()];
  entry.settler.start();
  const left = entry.pending.settle(3);
  await pass(0);
  expect([entry.tries, await left]).toEqual([1, []]);
});

test.each([
  ['takes over the work of an earlier one with the same id', '1', 'c', 'c', true],
  ['takes over the work for a cluster that is not known yet', '1', undefined, 'c', true],
  ['leaves work for another id', '2', 'c', 'c', false],
  ['leaves work for another cluster', '1', 'd', 'c', false],
])('a settler %s', async (_, id, clusterId, ownCluster, isTakenOver) => {
  const { atWork, entry } = setUp();
  const earlier = new Entry(atWork, id);
  [earlier.clusterId, entry.clusterId] = [clusterId, ownCluster];
  earlier.settler.start();
  const takeOver = vi.fn();
  await entry.settler.stop(takeOver);
  expect(takeOver.mock.calls).toEqual(isTakenOver ? [[earlier]] : []);
  expect(earlier.settler.isAtWork).toBe(!isTakenOver);
  await pass(10);
  expect(earlier.tries).toBe(isTakenOver ? 0 : 1);
});

test('a settler takes over the work of the same client for a cluster that was replaced', async () => {
  const { atWork, entry } = setUp();
  const earlier = new Entry(atWork);
  [earlier.clusterId, entry.clusterId] = ['replaced', 'c'];
  earlier.pending = entry.pending;
  earlier.settler.start();
  const takeOver = vi.fn();
  await entry.settler.stop(takeOver);
  expect(takeOver.mock.calls).toEqual([[earlier]]);
});
