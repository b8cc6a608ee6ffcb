import { setTimeout as sleep } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { until } from '../until.ts';
import { elapsed, moment } from './stalls.mjs';

test('elapsed() counts a sleep, without the time the machine stalled', async () => {
  const from = moment();
  await sleep(300);
  const to = moment();
  expect(to.at - from.at).toBeGreaterThanOrEqual(299);
  expect(elapsed(from, to)).toBeLessThanOrEqual(to.at - from.at + 25);
});

test('elapsed() counts nearly all of the time on an idle machine', async () => {
  const share = await until(
    async () => {
      const from = moment();
      await sleep(100);
      const to = moment();
      return elapsed(from, to) / (to.at - from.at);
    },
    // Even a busy machine is idle in some tenth of a second.
    (counts) => counts > 0.7,
    { timeout: 60_000 },
  );
  expect(share).toBeLessThan(1.3);
});

test('elapsed() does not count the time for which the event loop is blocked, even before its timers run', async () => {
  const from = moment();
  const end = from.at + 500;
  let to = moment();
  while (to.at < end) to = moment();
  expect(elapsed(from, to)).toBeLessThan(50);
  await sleep(20);
  expect(elapsed(from)).toBeLessThan(100);
});
