import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { Trial } from '../../src/http/trial.ts';

beforeEach(() => {
  vi.useFakeTimers();
});

afterEach(() => {
  vi.useRealTimers();
});

const MINUTE = 60_000;

test('what failed twice in a row is given up for ten minutes', () => {
  const trial = new Trial();
  trial.failed();
  expect(trial.givenUp).toBe(false);
  trial.failed();
  expect(trial.givenUp).toBe(true);
  vi.advanceTimersByTime(10 * MINUTE - 1);
  expect(trial.givenUp).toBe(true);
  vi.advanceTimersByTime(1);
  expect(trial.givenUp).toBe(false);
});

test('one more failure after that is enough', () => {
  const trial = new Trial();
  trial.failed();
  trial.failed();
  vi.advanceTimersByTime(11 * MINUTE);
  trial.failed();
  expect(trial.givenUp).toBe(true);
});

test('what succeeds in between is not given up', () => {
  const trial = new Trial();
  for (let round = 0; round < 5; round += 1) {
    trial.failed();
    trial.succeeded();
  }
  trial.failed();
  expect(trial.givenUp).toBe(false);
});
