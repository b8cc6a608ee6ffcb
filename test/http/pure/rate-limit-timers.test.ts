import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { ignore, Scope } from '../../../src/base/cancellation.ts';
import { RateLimit } from '../../../src/http/failover/rate-limit.ts';
import { refsOfTimers } from '../../support/timers.ts';

beforeEach(() => void vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'performance'] }));
afterEach(() => void vi.useRealTimers());

/** A rate limit in an outage, and a function that makes a request wait. It returns which of its timers keep the process alive. */
function setUp() {
  const rateLimit = new RateLimit();
  rateLimit.count();
  rateLimit.startOutage(1);
  const wait = (ref: boolean, ending = new Scope()): boolean[] =>
    refsOfTimers(() => void rateLimit.admit(ending, ref).catch(ignore));
  return { rateLimit, wait };
}

describe('a request that waits in an outage keeps the process alive', () => {
  test('unless it is background work', () => {
    expect(setUp().wait(true)).toEqual([true, true]);
    expect(setUp().wait(false)).toEqual([false, false]);
  });

  test.each<[string, (waiting: { rateLimit: RateLimit; ending: Scope }) => unknown]>([
    ['was admitted', () => vi.advanceTimersByTimeAsync(150)],
    ['was aborted', ({ ending }) => ending.abort(new Error('enough'))],
    [
      'waited too long',
      async ({ rateLimit }) => {
        // Others are admitted before it.
        for (let i = 0; i < 20; i += 1) void rateLimit.admitNext(new Scope(), false)?.catch(ignore);
        await vi.advanceTimersByTimeAsync(1500);
      },
    ],
    [
      'was admitted because a member has answered',
      ({ rateLimit }) => {
        rateLimit.endOutage();
        rateLimit.startOutage(1);
      },
    ],
  ])('only until it %s: background work that waits later does not', async (_, end) => {
    const { rateLimit, wait } = setUp();
    const ending = new Scope();
    wait(true, ending);
    await end({ rateLimit, ending });
    expect(wait(false)).toEqual([false, false]);
  });
});
