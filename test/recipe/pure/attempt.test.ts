import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { Scope } from '../../../src/base/cancellation.ts';
import { EtcdConnectionFailed, EtcdLockExpired, EtcdLockTimeout } from '../../../src/errors.ts';
import { Attempt, type AttemptLimits, deadlineUnlessZero } from '../../../src/recipe/attempt.ts';
import type { LockStore } from '../../../src/recipe/store.ts';
import { rejection } from '../../support/clients.ts';
import { listenersOf } from '../../support/leaks.ts';

beforeEach(() => void vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'performance'] }));
afterEach(() => void vi.useRealTimers());

/** An attempt with a timeout of so many seconds. */
function attemptFor(timeout: number, limits: Partial<AttemptLimits> = {}) {
  const closing = new Scope();
  const store = { pending: { closing }, clusterId: 'c' } as Partial<LockStore> as LockStore;
  const all = { blocking: true, timeout, signal: undefined, deadline: deadlineUnlessZero(timeout), ...limits };
  return { attempt: new Attempt(store, '/_locks/job', all), closing };
}

describe('an attempt that begins again', () => {
  test('ends when its first timeout has passed, which does not begin again', async () => {
    const { attempt } = attemptFor(4);
    await vi.advanceTimersByTimeAsync(3000);
    attempt.restart();
    await vi.advanceTimersByTimeAsync(999);
    attempt.assertActive();
    await vi.advanceTimersByTimeAsync(1);
    expect(() => attempt.assertActive()).toThrow(EtcdLockTimeout);
    expect(attempt.signal.aborted).toBe(true);
    attempt.dispose();
  });

  test('has ended already if its timeout has passed', async () => {
    const { attempt } = attemptFor(4);
    await vi.advanceTimersByTimeAsync(4000);
    attempt.restart();
    await vi.advanceTimersByTimeAsync(0);
    expect(() => attempt.assertActive()).toThrow(EtcdLockTimeout);
    attempt.dispose();
  });

  test('is not ended any more by the loss of its first entry', () => {
    const { attempt } = attemptFor(4);
    const loss = new Scope();
    attempt.abortWith(loss);
    attempt.restart();
    loss.abort(new EtcdLockExpired('its key is gone'));
    attempt.assertActive();
    attempt.dispose();
  });

  test('has one listener on the signal of the caller, and none once it is over', () => {
    const { signal } = new AbortController();
    const { attempt, closing } = attemptFor(4, { signal });
    for (let round = 0; round < 3; round += 1) attempt.restart();
    expect([listenersOf(signal), closing.listenerCount, vi.getTimerCount()]).toEqual([1, 1, 1]);
    attempt.dispose();
    expect([listenersOf(signal), closing.listenerCount, vi.getTimerCount()]).toEqual([0, 0, 0]);
  });
});

describe('the pause before a request is sent again ends at once', () => {
  test.each<[string, (ends: { caller: AbortController; closing: Scope }) => unknown]>([
    ['when the signal of the caller aborts', ({ caller }) => caller.abort(new Error('enough'))],
    ['when the client is closed', ({ closing }) => closing.abort(new Error('closed'))],
    ['when the timeout has passed', () => vi.advanceTimersByTimeAsync(20)],
  ])('%s', async (_, end) => {
    const caller = new AbortController();
    const { attempt, closing } = attemptFor(0.02, { signal: caller.signal });
    const call = vi.fn(() => Promise.reject(new EtcdConnectionFailed('no answer')));
    let ended: unknown;
    attempt.retry(call).catch((error: unknown) => {
      ended = error;
    });
    // The pause takes at least 50 ms.
    await vi.advanceTimersByTimeAsync(1);
    expect(ended).toBeUndefined();
    await end({ caller, closing });
    await vi.advanceTimersByTimeAsync(0);
    expect(ended).toBe(attempt.signal.reason);
    expect(call).toHaveBeenCalledTimes(1);
    attempt.dispose();
  });
});

test('an attempt without a limit ends only when its caller says so', async () => {
  const caller = new AbortController();
  const { attempt } = attemptFor(0, { signal: caller.signal });
  await vi.advanceTimersByTimeAsync(10 ** 9);
  attempt.assertActive();
  caller.abort(new EtcdLockTimeout('enough', { reason: 'held' }));
  await rejection(
    Promise.resolve().then(() => attempt.assertActive()),
    EtcdLockTimeout,
  );
  attempt.dispose();
});
