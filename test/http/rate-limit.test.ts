import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { sharedAbortController } from '../../src/base/cancellation.ts';
import { EtcdConnectionFailed } from '../../src/errors.ts';
import { RateLimit } from '../../src/http/failover/rate-limit.ts';
import { closedEndpoint, connect, rejection, serve } from '../support/clients.ts';
import { mostInASecond, recordRequests } from '../support/request-times.ts';
import { answer, refuse, silent } from '../support/tcp-server.ts';
import { until } from '../support/until.ts';
import { failed, got, rawAnswer } from '../support/v2-answers.ts';

const KEY = '/_locks/x/00000000000000000004';
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
    expect(vi.getTimerCount()).toBe(0);
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
    expect(vi.getTimerCount()).toBe(0);
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
    expect(vi.getTimerCount()).toBe(0);
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
    expect(vi.getTimerCount()).toBe(0);
  });

  test('rejects at once if the signal has aborted already', async () => {
    await expect(new RateLimit().admit(AbortSignal.abort('over'), true)).rejects.toBe('over');
  });
});

describe('a client during an outage', () => {
  test.each([
    ['refuses connections', refuse],
    ['has no quorum', answer(rawAnswer(500, failed(300)))],
    ['does not answer', silent],
  ])('sends at most 5 requests in any second, however many calls there are, if each member %s', async (_, handler) => {
    const endpoints = (await Promise.all([serve(handler), serve(handler), serve(handler)])).map(({ url }) => url);
    const times = recordRequests(endpoints);
    const client = connect({ endpoints, readTimeout: 0.3 });
    // The first call starts the outage.
    await rejection(client.get(KEY), EtcdConnectionFailed);
    const begun = times.length;
    const abort = sharedAbortController();
    const calls = Array.from({ length: 30 }, async (_, i) => {
      while (!abort.signal.aborted) {
        const call =
          i % 2
            ? client.get(KEY, { signal: abort.signal })
            : client.renew(KEY, { prevValue: 'u', prevIndex: 4, ttl: 60, signal: abort.signal });
        await call.catch(() => {});
      }
    });
    await until(
      () => times.length - begun,
      (count) => count >= 12,
      { timeout: 20_000 },
    );
    abort.abort();
    await Promise.all(calls);
    expect(mostInASecond(times.slice(begun))).toBeLessThanOrEqual(5);
  });

  test('sends the requests of all calls as soon as a member answers', async () => {
    let up = false;
    const good = answer(rawAnswer(200, got(KEY)));
    const etcd = await serve((socket, request) => (up ? good : refuse)(socket, request));
    const client = connect({ endpoints: [etcd.url, await closedEndpoint()] });
    await rejection(client.get(KEY), EtcdConnectionFailed);
    up = true;
    await Promise.all(Array.from({ length: 200 }, () => client.get(KEY)));
    await until(
      () => etcd.requests.length,
      (count) => count >= 200,
    );
  });
});
