import { expect, test } from 'vitest';
import { enterTimeout } from '../../../../src/v2/locks/timing.ts';

test.each([
  [3, 0, 1],
  [9, 0, 1],
  [15, 0, 15 / 9],
  [30, 0, 2],
  [null, 0, 2],
  [9, 1, 2],
  [9, 2, 4],
  [30, 3, 16],
])('an attempt to enter the queue with a TTL of %s s gets, after %i failed attempts, %f s', (ttl, failed, seconds) => {
  expect(enterTimeout(ttl, failed)).toBe(seconds);
});

test('an attempt gets no more time after very many failed attempts than after a few', () => {
  expect(enterTimeout(30, 100_000)).toBe(enterTimeout(30, 3));
});
