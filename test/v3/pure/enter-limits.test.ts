import { expect, test } from 'vitest';
import { enterLimits } from '../../../src/v3/locks/timing.ts';

test.each([
  [0, 1, 2],
  [1, 2, 3],
  [2, 2, 5],
  [3, 2, 9],
  [100_000, 2, 9],
])(
  'after %i failed tries to enter the queue, another member is asked after %i s, and a try lasts %i s',
  (failed, attemptTimeout, timeout) => {
    expect(enterLimits(failed)).toEqual({ attemptTimeout, timeout });
  },
);
