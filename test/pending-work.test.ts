import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { addAbortListener } from '../src/cancellation.ts';
import { PendingWork } from '../src/pending-work.ts';

const reason = new Error('closed');

beforeEach(() => {
  vi.useFakeTimers();
});

afterEach(() => {
  expect(vi.getTimerCount()).toBe(0);
  vi.useRealTimers();
});

test('without pending work, settling ends at once', async () => {
  expect(await new PendingWork(() => reason).settle(5)).toEqual([]);
});

test('settling aborts `closing` with the given reason', async () => {
  const cleanups = new PendingWork(() => reason);
  expect(cleanups.closing.aborted).toBe(false);
  const ends = new Promise<void>((resolve) => addAbortListener(cleanups.closing, () => resolve()));
  cleanups.add('/a', ends);
  expect(await cleanups.settle(5)).toEqual([]);
  expect(cleanups.closing.reason).toBe(reason);
});

test('settling also waits for work that is added in the meantime', async () => {
  const cleanups = new PendingWork(() => reason);
  cleanups.add(
    '/a',
    Promise.resolve().then(() => cleanups.add('/b', after(1000))),
  );
  const settled = cleanups.settle(5);
  await vi.advanceTimersByTimeAsync(1000);
  expect(await settled).toEqual([]);
});

test('settling resolves to the keys of unfinished work: each key once, in order', async () => {
  const cleanups = new PendingWork(() => reason);
  cleanups.add('/done', after(500));
  for (const key of ['/b', '/a', '/b']) cleanups.add(key, after(10_000));
  const settled = cleanups.settle(5);
  await vi.advanceTimersByTimeAsync(5000);
  expect(await settled).toEqual(['/a', '/b']);
  await vi.advanceTimersByTimeAsync(5000);
});

test('a key is named until all of its work has ended', async () => {
  const cleanups = new PendingWork(() => reason);
  cleanups.add('/a', after(100));
  cleanups.add('/a', after(10_000));
  const settled = cleanups.settle(1);
  await vi.advanceTimersByTimeAsync(1000);
  expect(await settled).toEqual(['/a']);
  await vi.advanceTimersByTimeAsync(9000);
  expect(await cleanups.settle(1)).toEqual([]);
});

test('settling with a timeout of 0 resolves to the pending keys', async () => {
  const cleanups = new PendingWork(() => reason);
  cleanups.add('/a', after(10));
  const settled = cleanups.settle(0);
  await vi.advanceTimersByTimeAsync(1);
  expect(await settled).toEqual(['/a']);
  await vi.advanceTimersByTimeAsync(10);
});

const after = (ms: number) => new Promise<void>((resolve) => setTimeout(resolve, ms));
