import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { addAbortListener } from '../../../src/base/cancellation.ts';
import { PendingWork } from '../../../src/base/pending-work.ts';
import { fakeTimersLeft } from '../../support/timers.ts';

const reason = new Error('closed');

beforeEach(() => {
  vi.useFakeTimers();
});

afterEach(() => {
  expect(fakeTimersLeft()).toEqual([]);
  vi.useRealTimers();
});

test('settle() resolves at once without pending work', async () => {
  expect(await new PendingWork(() => reason).settle(5)).toEqual([]);
});

test('settle() aborts `closing` with the given reason', async () => {
  const cleanups = new PendingWork(() => reason);
  expect(cleanups.closing.aborted).toBe(false);
  const ends = new Promise<void>((resolve) => addAbortListener(cleanups.closing, () => resolve()));
  cleanups.add('/a', ends);
  expect(await cleanups.settle(5)).toEqual([]);
  expect(cleanups.closing.reason).toBe(reason);
});

test('settle() also waits for work that is added while it waits', async () => {
  const cleanups = new PendingWork(() => reason);
  cleanups.add(
    '/a',
    Promise.resolve().then(() => cleanups.add('/b', after(1000))),
  );
  const settled = cleanups.settle(5);
  await vi.advanceTimersByTimeAsync(1000);
  expect(await settled).toEqual([]);
});

test('settle() resolves to the sorted keys of unfinished work, each key once', async () => {
  const cleanups = new PendingWork(() => reason);
  cleanups.add('/done', after(500));
  for (const key of ['/b', '/a', '/b']) cleanups.add(key, after(10_000));
  const settled = cleanups.settle(5);
  await vi.advanceTimersByTimeAsync(5000);
  expect(await settled).toEqual(['/a', '/b']);
  await vi.advanceTimersByTimeAsync(5000);
});

test('settle() reports a key until all of its work has ended', async () => {
  const cleanups = new PendingWork(() => reason);
  cleanups.add('/a', after(100));
  cleanups.add('/a', after(10_000));
  const settled = cleanups.settle(1);
  await vi.advanceTimersByTimeAsync(1000);
  expect(await settled).toEqual(['/a']);
  await vi.advanceTimersByTimeAsync(9000);
  expect(await cleanups.settle(1)).toEqual([]);
});

test('settle() with a timeout of 0 resolves to the pending keys', async () => {
  const cleanups = new PendingWork(() => reason);
  cleanups.add('/a', after(10));
  const settled = cleanups.settle(0);
  await vi.advanceTimersByTimeAsync(1);
  expect(await settled).toEqual(['/a']);
  await vi.advanceTimersByTimeAsync(10);
});

const after = (ms: number) => new Promise<void>((resolve) => setTimeout(resolve, ms));
