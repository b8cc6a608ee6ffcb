import { expect, test, vi } from 'vitest';
import { Scope } from '../../src/cancellation.ts';
import { EtcdConnectionFailed } from '../../src/errors.ts';
import type { Endpoint } from '../../src/http/endpoint.ts';
import { Members } from '../../src/http/failover/members.ts';
import { RateLimit } from '../../src/http/failover/rate-limit.ts';
import { type Repeat, Round } from '../../src/http/failover/round.ts';
import { Deadline } from '../../src/time.ts';
import { rejection } from '../support/clients.ts';

const MEMBERS = 3;

/** Makes one call to three members, with a function that asks a member. */
function call(ask: () => Promise<unknown>, { repeat = 'safe' as Repeat, limit = Deadline.never } = {}) {
  const rateLimit = new RateLimit();
  const list = Array.from({ length: MEMBERS }, (_, at) => ({ url: `http://m${at}`, wasStale: () => false }));
  const members = new Members(list as unknown as Endpoint[], rateLimit);
  const options = { repeat, ending: new Scope(), timeout: 5, hedgeAfter: 5, limit, ref: true };
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

test.each([
  ['a write whose answer contains nothing', 'hedged', false],
  ['a poll without an event', 'poll', true],
] as const)('after %s (%s), there is still an outage: %s', async (_, repeat, isOutage) => {
  const { rateLimit, run } = call(() => Promise.resolve(undefined), { repeat });
  rateLimit.startOutage(1);
  expect(await run()).toBe(undefined);
  expect(rateLimit.isOutage).toBe(isOutage);
});
