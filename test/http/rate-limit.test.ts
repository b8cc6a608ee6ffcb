import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { sharedAbortController } from '../../src/cancellation.ts';
import { EtcdConnectionFailed } from '../../src/errors.ts';
import { Pace } from '../../src/http/failover/rate-limit.ts';
import { closedEndpoint, connect, rejection, serve } from '../support/clients.ts';
import { answer, refuse, silent } from '../support/tcp-server.ts';
import { until } from '../support/until.ts';
import { failed, got, rawAnswer } from '../support/v2-answers.ts';

const KEY = '/_locks/x/00000000000000000004';
const never = sharedAbortController().signal;

describe('a pace', () => {
  beforeEach(() => {
    vi.useFakeTimers();
  });
  afterEach(() => {
    vi.useRealTimers();
  });

  /** When each of so many turns was given, in milliseconds from now on. */
  function take(pace: Pace, count: number): number[] {
    const start = performance.now();
    const given: number[] = [];
    for (let i = 0; i < count; i += 1)
      void pace.turn(never, true).then(
        () => given.push(performance.now() - start),
        () => {},
      );
    return given;
  }

  test('holds nobody back while the cluster answers', async () => {
    const given = take(new Pace(), 100);
    await vi.advanceTimersByTimeAsync(0);
    expect(given).toEqual(Array(100).fill(0));
  });

  test('gives at most 4 turns in any second while it does not, however many ask for them again and again', async () => {
    const pace = new Pace();
    const given = take(pace, 3);
    pace.down(3);
    const start = performance.now();
    const abort = sharedAbortController();
    const ask = async (): Promise<void> => {
      while (!abort.signal.aborted)
        await pace.turn(abort.signal, true).then(
          () => given.push(performance.now() - start),
          () => {},
        );
    };
    const asking = Array.from({ length: 40 }, ask);
    await vi.advanceTimersByTimeAsync(10_000);
    abort.abort();
    await Promise.all(asking);
    expect(given.length).toBeGreaterThan(35);
    for (let i = 4; i < given.length; i += 1)
      expect((given[i] as number) - (given[i - 4] as number)).toBeGreaterThanOrEqual(1000);
  });

  test('sends who waits for long away, since others find out the same, and keeps the order', async () => {
    const pace = new Pace();
    pace.down(1);
    const order: number[] = [];
    const asked = Array.from({ length: 20 }, (_, i) => pace.turn(never, true).then(() => order.push(i)));
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

  test('does not hold what was sent before against a cluster that has just gone down', async () => {
    const pace = new Pace();
    take(pace, 10);
    pace.down(1);
    const given = take(pace, 1);
    await vi.advanceTimersByTimeAsync(200);
    expect(given.length).toBe(1);
  });

  test('counts requests that had no turn', async () => {
    const pace = new Pace();
    pace.down(1);
    for (let i = 0; i < 4; i += 1) pace.sent();
    const given = take(pace, 1);
    await vi.advanceTimersByTimeAsync(999);
    expect(given).toEqual([]);
    await vi.advanceTimersByTimeAsync(1);
    expect(given).toEqual([1000]);
  });

  test('gives everybody a turn at once when a member answers again', async () => {
    const pace = new Pace();
    pace.down(1);
    const given = take(pace, 100);
    await vi.advanceTimersByTimeAsync(500);
    expect(given.length).toBeLessThanOrEqual(4);
    pace.up();
    await vi.advanceTimersByTimeAsync(0);
    expect(given.length).toBe(100);
    expect(vi.getTimerCount()).toBe(0);
  });

  test('loses no turn to a call that has ended', async () => {
    const pace = new Pace();
    pace.down(1);
    for (let i = 0; i < 4; i += 1) pace.sent();
    const abort = sharedAbortController();
    const gone = Array.from({ length: 50 }, () => pace.turn(abort.signal, true).catch((reason: unknown) => reason));
    const given = take(pace, 1);
    abort.abort('over');
    expect(await Promise.all(gone)).toEqual(Array(50).fill('over'));
    await vi.advanceTimersByTimeAsync(1000);
    expect(given).toEqual([1000]);
    expect(vi.getTimerCount()).toBe(0);
  });

  test('does not begin for a signal that has aborted already', async () => {
    await expect(new Pace().turn(AbortSignal.abort('over'), true)).rejects.toBe('over');
  });
});

describe('a client without a cluster', () => {
  test.each([
    ['refuses connections', refuse],
    ['has no quorum', answer(rawAnswer(500, failed(300)))],
    ['is silent', silent],
  ])(
    'sends no more than 5 requests in any second, however many calls there are, where each member %s',
    async (_, handler) => {
      const times: number[] = [];
      const noted = async () =>
        (
          await serve((socket, request) => {
            times.push(performance.now());
            return handler(socket, request);
          })
        ).url;
      const client = connect({ endpoints: await Promise.all([noted(), noted(), noted()]), readTimeout: 0.3 });
      // The first round finds out.
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
      for (let i = begun + 5; i < times.length; i += 1)
        expect((times[i] as number) - (times[i - 5] as number)).toBeGreaterThan(900);
    },
  );

  test('lets all calls go on as soon as a member answers', async () => {
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
