import { expect, test } from 'vitest';
import { sleepUntilDue } from '../../src/recipe/due.ts';
import { block } from '../support/managers.ts';

const never = new AbortController().signal;

test('a sleep does not end before it is due', async () => {
  const due = performance.now() + 300;
  await sleepUntilDue(due, never);
  expect(performance.now()).toBeGreaterThanOrEqual(due);
});

test('a sleep ends early if the event loop is blocked repeatedly and the next block would make it late', async () => {
  const start = performance.now();
  let ended: number | undefined;
  void sleepUntilDue(start + 1000, never).then(() => {
    ended = performance.now() - start;
  });
  while (ended === undefined) {
    block(0.3);
    await new Promise(setImmediate);
  }
  // The sleep can end only between two blocks, every 0.3 s.
  expect(ended).toBeGreaterThan(400);
  expect(ended).toBeLessThan(1000);
});

test('a sleep that is already due ends at once, and an aborted sleep rejects with the abort reason', async () => {
  await sleepUntilDue(performance.now() - 1, never);
  const reason = new Error('over');
  await expect(sleepUntilDue(performance.now() + 60_000, AbortSignal.abort(reason))).rejects.toBe(reason);
});
