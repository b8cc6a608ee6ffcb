import { expect, test, vi } from 'vitest';
import { sleepUntilDue } from '../../src/base/due.ts';
import { block } from '../support/managers.ts';

const never = new AbortController().signal;

test('a sleep does not end before it is due', async () => {
  vi.useFakeTimers();
  try {
    const ended = vi.fn();
    void sleepUntilDue(performance.now() + 300, never).then(ended);
    await vi.advanceTimersByTimeAsync(299);
    expect(ended).not.toHaveBeenCalled();
    await vi.advanceTimersByTimeAsync(1);
    expect(ended).toHaveBeenCalled();
  } finally {
    vi.useRealTimers();
  }
});

test('a sleep ends early if the event loop is blocked repeatedly and the next block would make it late', async () => {
  const start = performance.now();
  let ended: number | undefined;
  void sleepUntilDue(start + 1000, never).then(() => {
    ended = performance.now() - start;
  });
  let overrun = 0;
  while (ended === undefined) {
    const from = performance.now();
    block(0.3);
    await new Promise(setImmediate);
    overrun += performance.now() - from - 300;
  }
  // The sleep can end only between two blocks, every 0.3 s.
  expect(ended).toBeGreaterThan(400);
  expect(ended).toBeLessThan(1000 + overrun);
});

test('a sleep that is already due ends at once, and an aborted sleep rejects with the abort reason', async () => {
  await sleepUntilDue(performance.now() - 1, never);
  const reason = new Error('over');
  await expect(sleepUntilDue(performance.now() + 60_000, AbortSignal.abort(reason))).rejects.toBe(reason);
});
