import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { ignore, Scope } from '../../../src/base/cancellation.ts';
import { Deadline } from '../../../src/base/time.ts';
import { EtcdConnectionFailed } from '../../../src/errors.ts';
import type { Endpoint } from '../../../src/http/endpoint.ts';
import { Members } from '../../../src/http/failover/members.ts';
import { RateLimit } from '../../../src/http/failover/rate-limit.ts';
import { type Repeat, Round } from '../../../src/http/failover/round.ts';
import { rejection } from '../../support/clients.ts';

const MEMBERS = 3;

/** Makes one call to three members, with a function that asks a member. */
function call(
  ask: () => Promise<unknown>,
  { repeat = 'safe' as Repeat, limit = Deadline.never, hedgeAfter = 5, wasStale = (): boolean => false } = {},
) {
  const rateLimit = new RateLimit();
  const list = Array.from({ length: MEMBERS }, (_, at) => ({ url: `http://m${at}`, wasStale }));
  const members = new Members(list as unknown as Endpoint[], rateLimit);
  const options = { repeat, ending: new Scope(), timeout: 5, hedgeAfter, limit, ref: true };
  return { rateLimit, run: () => new Round(members, rateLimit, options, ask).run() };
}

const unreachable = () => Promise.reject(new EtcdConnectionFailed('unreachable'));

test('a call whose time is over asks no further member after a failure', async () => {
  const ask = vi.fn(unreachable);
  const { run } = call(ask, { limit: Deadline.after(0) });
  await rejection(run(), EtcdConnectionFailed);
  expect(ask).toHaveBeenCalledTimes(1);
});

test('a call whose time is not over asks each member once', async () => {
  const ask = vi.fn(unreachable);
  await rejection(call(ask).run(), EtcdConnectionFailed);
  expect(ask).toHaveBeenCalledTimes(MEMBERS);
});

test('a request that is sent again because its connection was stale counts twice against the rate limit', async () => {
  const ask = vi
    .fn(unreachable)
    .mockImplementationOnce(unreachable)
    .mockResolvedValueOnce('answer' as never);
  const { rateLimit, run } = call(ask, { wasStale: () => true });
  const count = vi.spyOn(rateLimit, 'count');
  expect(await run()).toBe('answer');
  expect(count).toHaveBeenCalledTimes(2);
});

test.each([
  ['a write whose answer contains nothing', 'hedged', false],
  ['a poll without an event', 'poll', true],
] as const)('after %s (%s), there is still an outage: %s', async (_, repeat, isOutage) => {
  const { rateLimit, run } = call(() => Promise.resolve(undefined), { repeat });
  rateLimit.startOutage(1);
  expect(await run()).toBe(undefined);
  expect(rateLimit.isOutage).toBe(isOutage);
});

describe('a hedged call without an answer, whose fourth attempt waits too long for its turn in an outage', () => {
  beforeEach(() => {
    vi.useFakeTimers();
  });

  afterEach(() => {
    vi.useRealTimers();
  });

  /** Makes attempts at 0, 1 and 2 s. The fourth, from 3 s on, waits behind those of other calls, and is refused at 4.5 s. */
  async function refusedOnce(limit?: Deadline) {
    const ask = vi.fn(() => new Promise<never>(ignore));
    const { rateLimit, run } = call(ask, { repeat: 'hedged', hedgeAfter: 1, limit });
    const running = run();
    running.catch(ignore);
    await vi.advanceTimersByTimeAsync(2990);
    rateLimit.startOutage(MEMBERS);
    for (let others = 0; others < 50; others++) rateLimit.admit(new Scope(), true).catch(ignore);
    await vi.advanceTimersByTimeAsync(1600);
    expect(ask).toHaveBeenCalledTimes(MEMBERS);
    return { ask, running };
  }

  test('makes another attempt', async () => {
    const { ask } = await refusedOnce();
    await vi.advanceTimersByTimeAsync(1000);
    expect(ask).toHaveBeenCalledTimes(MEMBERS + 1);
  });

  test('fails with the silence of each member, and an unknown outcome, if its time is over', async () => {
    const { running } = await refusedOnce(Deadline.after(4));
    const error = await rejection(running, EtcdConnectionFailed);
    expect(error.failures.map(({ endpoint }) => endpoint)).toEqual(['http://m0', 'http://m1', 'http://m2']);
    expect(error).toMatchObject({
      outcomeUnknown: true,
      message: expect.stringContaining('http://m1: no answer in 3.'),
    });
  });
});
