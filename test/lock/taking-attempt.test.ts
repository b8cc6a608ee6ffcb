import { expect, test } from 'vitest';
import { takingAttempt } from '../../src/v2/locks/entry.ts';

test.each([
  [3, 0, 1],
  [9, 0, 1],
  [15, 0, 15 / 9],
  [30, 0, 2],
  [null, 0, 2],
  [9, 1, 2],
  [9, 2, 4],
  [30, 3, 16],
])('an attempt to queue with a TTL of %s s gets, after %i failed rounds, %f s', (ttl, failed, seconds) => {
  expect(takingAttempt(ttl, failed)).toBe(seconds);
});

test('an attempt gets no more time after very many failed rounds than after a few', () => {
  expect(takingAttempt(30, 100_000)).toBe(takingAttempt(30, 3));
});
