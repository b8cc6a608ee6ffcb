import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { sharedAbortController } from '../../../src/base/cancellation.ts';
import { RateLimit } from '../../../src/http/failover/rate-limit.ts';
import { fakeTimersLeft } from '../../support/timers.ts';

const never = sharedAbortController().signal;

describe('a rate limit', () => {
  beforeEach(() => {
    vi.useFakeTimers();
  });
  afterEach(() => {
    vi.useRealTimers();
  });

  /** Requests admission `count` times. Returns when each was admitted, in milliseconds from now. */
  function take(rateLimit: RateLimit, count: number): number[] {
    const start = performance.now();
    const admitted: number[] = [];
    for (let i = 0; i < count; i += 1)
      void rateLimit.admit(never, true).then(
        () => admitted.push(performance.now() - start),
        () => {},
      );
    return admitted;
  }

  test('admits all requests at once while the cluster answers', async () => {
    const admitted = take(new RateLimit(), 100);
    await vi.advanceTimersByTimeAsync(0);
    expect(admitted).toEqual(Array(100).fill(0));
  });

  test('admits at most 4 requests in any second during an outage, however many calls retry', async () => {
    const rateLimit = new RateLimit();
    const admitted = take(rateLimit, 3);
    rateLimit.startOutage(3);
    const start = performance.now();
    const abort = sharedAbortController();
    const ask = async (): Promise<void> => {
      while (!abort.signal.aborted)
        await rateLimit.admit(abort.signal, true).then(
          () => admitted.push(performance.now() - start),
          () => {},
        );
    };
    const asking = Array.from({ length: 40 }, ask);
    await vi.advanceTimersByTimeAsync(10_000);
    abort.abort();
    await Promise.all(asking);
    expect(admitted.length).toBeGreaterThan(35);
    for (let i = 4; i < admitted.length; i += 1)
      expect((admitted[i] as number) - (admitted[i - 4] as number)).toBeGreaterThanOrEqual(1000);
  });

  test('rejects requests that wait too long, and admits the others in order', async () => {
    const rateLimit = new RateLimit();
    rateLimit.startOutage(1);
    const order: number[] = [];
    const asked = Array.from({ length: 20 }, (_, i) => rateLimit.admit(never, true).then(() => order.push(i)));
    const ended = Promise.allSettled(asked);
    await vi.advanceTimersByTimeAsync(1500);
    const outcomes = await ended;
    expect(order.length).toBeGreaterThanOrEqual(4);
    expect(order).toEqual([...order].sort((a, b) => a - b));
    const refused = outcomes.flatMap((outcome) => (outcome.status === 'rejected' ? outcome.reason : []));
    expect(refused.length).toBe(20 - order.length);
    for (const error of refused)
      expect(error).toMatchObject({ message: 'no member of the cluster answers', outcomeUnknown: false });
    expect(fakeTimersLeft()).toEqual([]);
  });

  test('does not count requests from before the outage', async () => {
    const rateLimit = new RateLimit();
    take(rateLimit, 10);
    rateLimit.startOutage(1);
    const admitted = take(rateLimit, 1);
    await vi.advanceTimersByTimeAsync(200);
    expect(admitted.length).toBe(1);
  });

  test('counts requests that were not admitted here', async () => {
    const rateLimit = new RateLimit();
    rateLimit.startOutage(1);
    for (let i = 0; i < 4; i += 1) rateLimit.count();
    const admitted = take(rateLimit, 1);
    await vi.advanceTimersByTimeAsync(999);
    expect(admitted).toEqual([]);
    await vi.advanceTimersByTimeAsync(1);
    expect(admitted).toEqual([1000]);
  });

  test('admits a further request of an attempt before the requests that wait, within the same limit', async () => {
    const rateLimit = new RateLimit();
    expect(rateLimit.admitNext(never, true)).toBeUndefined();
    rateLimit.startOutage(1);
    for (let i = 0; i < 4; i += 1) rateLimit.count();
    const order: string[] = [];
    void rateLimit.admit(never, true).then(() => order.push('another attempt'));
    void rateLimit.admitNext(never, true)?.then(() => order.push('the same attempt'));
    await vi.advanceTimersByTimeAsync(999);
    expect(order).toEqual([]);
    await vi.advanceTimersByTimeAsync(1);
    expect(order).toEqual(['the same attempt']);
    await vi.advanceTimersByTimeAsync(200);
    expect(order).toEqual(['the same attempt', 'another attempt']);
    expect(fakeTimersLeft()).toEqual([]);
  });

  test('admits all requests at once when a member answers again', async () => {
    const rateLimit = new RateLimit();
    rateLimit.startOutage(1);
    const admitted = take(rateLimit, 100);
    await vi.advanceTimersByTimeAsync(500);
    expect(admitted.length).toBeLessThanOrEqual(4);
    rateLimit.endOutage();
    await vi.advanceTimersByTimeAsync(0);
    expect(admitted.length).toBe(100);
    expect(fakeTimersLeft()).toEqual([]);
  });

  test('wastes no admission on a call that has ended', async () => {
    const rateLimit = new RateLimit();
    rateLimit.startOutage(1);
    for (let i = 0; i < 4; i += 1) rateLimit.count();
    const abort = sharedAbortController();
    const gone = Array.from({ length: 50 }, () =>
      rateLimit.admit(abort.signal, true).catch((reason: unknown) => reason),
    );
    const admitted = take(rateLimit, 1);
    abort.abort('over');
    expect(await Promise.all(gone)).toEqual(Array(50).fill('over'));
    await vi.advanceTimersByTimeAsync(1000);
    expect(admitted).toEqual([1000]);
    expect(fakeTimersLeft()).toEqual([]);
  });

  test('rejects at once if the signal has aborted already', async () => {
    await expect(new RateLimit().admit(AbortSignal.abort('over'), true)).rejects.toBe('over');
  });
});
