import fc from 'fast-check';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { ignore, pause, sleep } from '../../../src/base/cancellation.ts';
import { atDeadline, Backoff, Deadline, now } from '../../../src/base/time.ts';
import { watchedSignal } from '../../support/signals.ts';
import { fakeTimersLeft, refsOfTimers } from '../../support/timers.ts';

const day = 24 * 3600;

beforeEach(() => {
  vi.useFakeTimers();
});

afterEach(() => {
  expect(fakeTimersLeft()).toEqual([]);
  vi.useRealTimers();
});

describe('Deadline', () => {
  test('counts down to 0 and stays there', () => {
    const deadline = Deadline.after(2);
    expect(deadline.remaining).toBe(2000);
    expect(deadline.passed).toBe(false);
    vi.advanceTimersByTime(1999);
    expect(deadline.remaining).toBe(1);
    expect(deadline.passed).toBe(false);
    vi.advanceTimersByTime(1);
    expect(deadline.passed).toBe(true);
    vi.advanceTimersByTime(5000);
    expect(deadline.remaining).toBe(0);
  });

  test('does not change with the wall clock', () => {
    const deadline = Deadline.after(2);
    vi.setSystemTime(Date.now() + day * 1000);
    expect(deadline.remaining).toBe(2000);
  });

  test('Deadline.never never passes', () => {
    expect(Deadline.never.passed).toBe(false);
    expect(Deadline.never.remaining).toBe(Number.POSITIVE_INFINITY);
  });

  test('has passed at once when created in the past', () => {
    expect(new Deadline(now() - 1).passed).toBe(true);
    expect(Deadline.after(0).passed).toBe(true);
  });
});

describe('atDeadline', () => {
  test('fires once and not before', () => {
    const fired = vi.fn();
    atDeadline(Deadline.after(1), fired);
    vi.advanceTimersByTime(999);
    expect(fired).not.toHaveBeenCalled();
    vi.advanceTimersByTime(1);
    expect(fired).toHaveBeenCalledTimes(1);
    vi.advanceTimersByTime(10_000);
    expect(fired).toHaveBeenCalledTimes(1);
  });

  test('does not fire early when the deadline is a fraction of a millisecond away', () => {
    const deadline = new Deadline(now() + 0.4);
    let early = true;
    atDeadline(deadline, () => {
      early = !deadline.passed;
    });
    vi.advanceTimersByTime(2);
    expect(early).toBe(false);
  });

  test('fires for a passed deadline, but not during the call', () => {
    const fired = vi.fn();
    atDeadline(new Deadline(now() - 5000), fired);
    expect(fired).not.toHaveBeenCalled();
    vi.runAllTimers();
    expect(fired).toHaveBeenCalledTimes(1);
  });

  test('waits longer than the 2^31 ms limit of one timer', () => {
    const fired = vi.fn();
    atDeadline(Deadline.after(60 * day), fired);
    vi.advanceTimersByTime(59 * day * 1000);
    expect(fired).not.toHaveBeenCalled();
    expect(vi.getTimerCount()).toBe(1);
    vi.advanceTimersByTime(day * 1000);
    expect(fired).toHaveBeenCalledTimes(1);
  });

  test('can be cancelled during each of its consecutive timers', () => {
    const fired = vi.fn();
    const cancel = atDeadline(Deadline.after(60 * day), fired);
    vi.advanceTimersByTime(30 * day * 1000);
    cancel();
    expect(fakeTimersLeft()).toEqual([]);
    cancel();
    vi.advanceTimersByTime(60 * day * 1000);
    expect(fired).not.toHaveBeenCalled();
  });

  test('sets no timer for Deadline.never', () => {
    const cancel = atDeadline(Deadline.never, () => expect.unreachable());
    expect(fakeTimersLeft()).toEqual([]);
    cancel();
  });

  test.each([
    [{}, true],
    [{ ref: true }, true],
    [{ ref: false }, false],
  ])('with %o keeps the process alive: %s, with each of its timers', (options, kept) => {
    let cancel = ignore;
    const refs = refsOfTimers(() => {
      cancel = atDeadline(Deadline.after(60 * day), () => {}, options);
      vi.advanceTimersByTime(30 * day * 1000);
    });
    cancel();
    expect(refs).toEqual([kept, kept]);
  });
});

describe('sleep', () => {
  test('resolves after its time and leaves no listener', async () => {
    const watched = watchedSignal();
    const slept = sleep(1000, watched.signal);
    expect(watched.listeners).toBe(1);
    await vi.advanceTimersByTimeAsync(1000);
    await slept;
    expect(watched.listeners).toBe(0);
  });

  test('rejects with the reason of the signal at once, and clears its timer', async () => {
    const watched = watchedSignal();
    const slept = sleep(1000, watched.signal);
    const reason = { any: 'thing' };
    watched.controller.abort(reason);
    await expect(slept).rejects.toBe(reason);
    expect(fakeTimersLeft()).toEqual([]);
  });

  test('rejects at once when the signal is already aborted', async () => {
    const watched = watchedSignal();
    watched.controller.abort('before');
    await expect(sleep(1000, watched.signal)).rejects.toBe('before');
    expect(watched.added).toBe(0);
  });

  test('of a negative time resolves at once', async () => {
    const slept = sleep(-5);
    await vi.runAllTimersAsync();
    await slept;
  });
});

describe('pause', () => {
  test('resolves after its time without keeping the process alive', async () => {
    const watched = watchedSignal();
    let paused = Promise.resolve();
    expect(
      refsOfTimers(() => {
        paused = pause(1000, watched.signal);
      }),
    ).toEqual([false]);
    await vi.advanceTimersByTimeAsync(1000);
    await paused;
    expect(watched.listeners).toBe(0);
  });

  test('resolves early, without an error, when any of its signals aborts', async () => {
    const [first, second] = [watchedSignal(), watchedSignal()];
    const paused = pause(1000, first.signal, second.signal);
    second.controller.abort(new Error('woken'));
    await paused;
    expect(first.listeners).toBe(0);
  });

  test('resolves at once when a signal is already aborted', async () => {
    await pause(1000, new AbortController().signal, AbortSignal.abort());
  });
});

describe('Backoff', () => {
  test('doubles its limit from `first` to `most`, each wait between half the limit and the limit', () => {
    const options = fc.record({ first: fc.integer({ min: 1, max: 1000 }), factor: fc.integer({ min: 1, max: 100 }) });
    fc.assert(
      fc.property(options, fc.integer({ min: 1, max: 20 }), ({ first, factor }, tries) => {
        const most = first * factor;
        const backoff = new Backoff({ first, most });
        for (let round = 0; round < tries; round += 1) {
          const whole = Math.min(first * 2 ** round, most);
          const wait = backoff.next();
          expect(wait).toBeGreaterThanOrEqual(whole / 2);
          expect(wait).toBeLessThanOrEqual(whole);
        }
        backoff.reset();
        expect(backoff.next()).toBeLessThanOrEqual(first);
      }),
    );
  });

  test('waits from 100 to 500 ms by default', () => {
    const backoff = new Backoff();
    const random = vi.spyOn(Math, 'random').mockReturnValue(1);
    expect(Array.from({ length: 5 }, () => backoff.next())).toEqual([100, 200, 400, 500, 500]);
    random.mockRestore();
  });
});
