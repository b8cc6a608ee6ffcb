import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { OptionalFeature } from '../../../src/http/optional-feature.ts';

beforeEach(() => {
  vi.useFakeTimers();
});

afterEach(() => {
  vi.useRealTimers();
});

const MINUTE = 60_000;

test('two failures in a row disable a feature for ten minutes', () => {
  const feature = new OptionalFeature(2);
  feature.failed();
  expect(feature.isDisabled).toBe(false);
  feature.failed();
  expect(feature.isDisabled).toBe(true);
  vi.advanceTimersByTime(10 * MINUTE - 1);
  expect(feature.isDisabled).toBe(true);
  vi.advanceTimersByTime(1);
  expect(feature.isDisabled).toBe(false);
});

test('one failure disables a feature whose limit is one', () => {
  const feature = new OptionalFeature(1);
  feature.failed();
  expect(feature.isDisabled).toBe(true);
  vi.advanceTimersByTime(10 * MINUTE);
  expect(feature.isDisabled).toBe(false);
});

test('after the ten minutes, one failure disables the feature again', () => {
  const feature = new OptionalFeature(2);
  feature.failed();
  feature.failed();
  vi.advanceTimersByTime(11 * MINUTE);
  feature.failed();
  expect(feature.isDisabled).toBe(true);
});

test('failures with a success in between do not disable a feature', () => {
  const feature = new OptionalFeature(2);
  for (let round = 0; round < 5; round += 1) {
    feature.failed();
    feature.succeeded();
  }
  feature.failed();
  expect(feature.isDisabled).toBe(false);
});
