import { expect, test } from 'vitest';
import { durationText, longest } from '../../../src/cli/queues/durations.ts';

test.each([
  [0, '0s'],
  [0.9, '0s'],
  [59, '59s'],
  [60, '1m'],
  [185, '3m5s'],
  [3600, '1h'],
  [3605, '1h'],
  [9000, '2h30m'],
  [86_400, '1d'],
  [1_000_000, '11d13h'],
])('%d seconds are shown as %s, with at most two units', (seconds, text) => {
  expect(durationText(seconds)).toBe(text);
});

test('the longest duration ignores those that are not known', () => {
  expect(longest([undefined, 3, undefined, 5, 4])).toBe(5);
  expect(longest([undefined])).toBeUndefined();
  expect(longest([])).toBeUndefined();
});
