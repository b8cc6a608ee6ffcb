import { expect, test } from 'vitest';
import { sleepUntilDue } from '../../src/recipe/due.ts';
import { block } from '../support/managers.ts';

const never = new AbortController().signal;

test('a sleep ends when it is due', async () => {
  const due = performance.now() + 300;
  await sleepUntilDue(due, never);
  expect(performance.now()).toBeGreaterThanOrEqual(due);
});

test('a sleep ends before it is due where the event loop is blocked beyond that, again and again', async () => {
  const start = performance.now();
  let ended: number | undefined;
  void sleepUntilDue(start + 1000, never).then(() => {
    ended = performance.now() - start;
  });
  while (ended === undefined) {
    block(0.3);
    await new Promise(setImmediate);
  }
  // Chances come every 0.3 s.
  expect(ended).toBeGreaterThan(400);
  expect(ended).toBeLessThan(1000);
});

test('a sleep ends at once where it is due already, and with the reason of what ends it', async () => {
  await sleepUntilDue(performance.now() - 1, never);
  const reason = new Error('over');
  await expect(sleepUntilDue(performance.now() + 60_000, AbortSignal.abort(reason))).rejects.toBe(reason);
});
