import { expect, test } from 'vitest';
import { median, percentile, ratio, summary } from '../../../bench/report/stats.mjs';

test('the median of an even number of samples is the mean of the middle two', () => {
  expect(median([4, 1, 3, 2])).toBe(2.5);
  expect(median([9, 1, 3])).toBe(3);
});

test('the 99th percentile is a sample that 99 of 100 do not exceed', () => {
  const hundred = Array.from({ length: 100 }, (_, i) => 100 - i);
  expect(percentile(hundred, 0.99)).toBe(99);
  expect(percentile([7], 0.99)).toBe(7);
});

test('summary() takes the median of the medians of the rounds, not of all samples', () => {
  expect(summary([[1, 1, 50], [2], [9]])).toEqual({ median: 2, low: 1, high: 9, p99: 50 });
});

test('ratio() divides within each round, so that a slow round affects both sides alike', () => {
  expect(ratio([[2], [20], [3]], [[1], [10], [1]])).toEqual({ median: 2, low: 2, high: 3 });
});
