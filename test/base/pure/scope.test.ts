import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { orAborted, Scope, sharedAbortController } from '../../../src/base/cancellation.ts';
import { Deadline, now } from '../../../src/base/time.ts';
import { watchedSignal } from '../../support/signals.ts';
import { fakeTimersLeft } from '../../support/timers.ts';

beforeEach(() => {
  vi.useFakeTimers();
});

afterEach(() => {
  expect(fakeTimersLeft()).toEqual([]);
  vi.useRealTimers();
});

describe('Scope', () => {
  test('aborts with the reason of the first signal that aborts, and ignores later ones', () => {
    const [first, second] = [new AbortController(), new AbortController()];
    const scope = new Scope(first.signal, undefined, second.signal);
    second.abort('second');
    first.abort('first');
    expect(scope.signal.reason).toBe('second');
    scope.dispose();
  });

  test('is aborted from the start when one of its signals is', () => {
    const scope = new Scope(new AbortController().signal, AbortSignal.abort('before'));
    expect(scope.signal.reason).toBe('before');
    scope.dispose();
  });

  test('can follow one signal many times without a leak warning', async () => {
    const warnings: Error[] = [];
    const onWarning = (warning: Error) => warnings.push(warning);
    process.on('warning', onWarning);
    const { signal } = new AbortController();
    const scopes = Array.from({ length: 20 }, () => new Scope(signal));
    // Warnings are emitted at the next tick.
    await new Promise(process.nextTick);
    process.off('warning', onWarning);
    expect(warnings).toEqual([]);
    for (const scope of scopes) scope.dispose();
  });

  test('has one signal, whether it is first read before or after the abort', () => {
    const [before, after] = [new Scope(), new Scope()];
    const { signal } = before;
    for (const scope of [before, after]) scope.abort('over');
    expect(before.signal).toBe(signal);
    expect(after.signal).toBe(after.signal);
    for (const scope of [before, after]) expect(scope.signal).toMatchObject({ aborted: true, reason: 'over' });
  });

  test('follows another scope like a signal, until dispose()', () => {
    const outer = new Scope();
    const [inner, gone] = [new Scope(outer), new Scope(outer)];
    gone.dispose();
    outer.abort('outer');
    expect(inner).toMatchObject({ aborted: true, reason: 'outer' });
    expect(gone.aborted).toBe(false);
    expect(new Scope(outer).reason).toBe('outer');
    expect(() => inner.throwIfAborted()).toThrow('outer');
  });

  test('follows a signal added later by abortWith()', () => {
    const later = watchedSignal();
    const scope = new Scope().abortWith(later.signal);
    expect(scope.signal.aborted).toBe(false);
    later.controller.abort('later');
    expect(scope.signal.reason).toBe('later');
    scope.dispose();
  });

  test('aborts at its deadline with a reason created at that time', () => {
    const scope = new Scope().abortAt(Deadline.after(1), () => now());
    const startedAt = now();
    vi.advanceTimersByTime(1000);
    expect(scope.signal.reason).toBe(startedAt + 1000);
    scope.dispose();
  });

  test('has no listener and no timer after dispose(), and no longer follows its signals', () => {
    const watched = [watchedSignal(), watchedSignal()];
    const scope = new Scope(...watched.map(({ signal }) => signal)).abortAt(Deadline.after(1), () => 'late');
    expect(watched.map(({ listeners }) => listeners)).toEqual([1, 1]);
    scope.dispose();
    scope.dispose();
    expect(watched.map(({ listeners }) => listeners)).toEqual([0, 0]);
    expect(fakeTimersLeft()).toEqual([]);
    for (const { controller } of watched) controller.abort();
    expect(scope.signal.aborted).toBe(false);
  });

  test('leaves no listener after following the same signal many times', () => {
    const watched = watchedSignal();
    for (let i = 0; i < 50; i += 1) new Scope(watched.signal, watched.signal).dispose();
    expect(watched.added).toBe(50);
    expect(watched.listeners).toBe(0);
  });
});

test('any number of scopes can follow a shared signal without a leak warning', () => {
  const warned = vi.spyOn(process, 'emitWarning').mockImplementation(() => {});
  const { signal } = sharedAbortController();
  const scopes = Array.from({ length: 40 }, () => new Scope(signal));
  expect(warned).not.toHaveBeenCalled();
  warned.mockRestore();
  for (const scope of scopes) scope.dispose();
});

describe('orAborted', () => {
  test('settles like its promise and leaves no listener', async () => {
    const watched = watchedSignal();
    await expect(orAborted(Promise.resolve(1), watched.signal)).resolves.toBe(1);
    await expect(orAborted(Promise.reject(new Error('x')), watched.signal)).rejects.toThrow('x');
    await Promise.resolve();
    expect(watched.listeners).toBe(0);
  });

  test('rejects with the reason of the signal, and handles a later rejection of the promise', async () => {
    const watched = watchedSignal();
    let fail = (_: Error) => {};
    const work = new Promise<void>((_, reject) => {
      fail = reject;
    });
    const raced = orAborted(work, watched.signal);
    watched.controller.abort('enough');
    await expect(raced).rejects.toBe('enough');
    fail(new Error('later, and unhandled if nothing caught it'));
    await expect(work).rejects.toThrow('later');
  });

  test('prefers an aborted signal to a settled promise', async () => {
    const signal = AbortSignal.abort('before');
    await expect(orAborted(Promise.resolve(1), signal)).rejects.toBe('before');
    await expect(orAborted(Promise.reject(new Error('x')), signal)).rejects.toBe('before');
  });
});
