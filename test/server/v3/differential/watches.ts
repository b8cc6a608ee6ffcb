/** Random streams of watches. */
import fc from 'fast-check';
import { key, rangeEnd } from './messages.ts';
import { behind, enumeration, flag, integer, message, mostly, type Tree } from './tree.ts';

/** A stream whose body has several requests. */
export interface Open {
  readonly requests: readonly Tree[];
  readonly camelCase: boolean;
}

const create = (start: fc.Arbitrary<Tree>): fc.Arbitrary<Tree> =>
  message(
    [9, 'key', key],
    [6, 'range_end', rangeEnd],
    [7, 'start_revision', start],
    [
      3,
      'filters',
      fc.array(mostly(enumeration('NOPUT', 'NODELETE'), fc.constant<Tree>(5)), { maxLength: 2, size: 'max' }),
    ],
    [4, 'prev_kv', flag],
    [3, 'watch_id', mostly(integer(1, 2, 5), integer(0, -1, -5))],
    [2, 'fragment', flag],
    [1, 'progress_notify', flag],
  ).map((request): Tree => ({ create_request: request }));

const cancel = message([10, 'watch_id', integer(0, 1, 2, 5, 77)]).map((request): Tree => ({ cancel_request: request }));

const progress = fc.constant<Tree>({ progress_request: {} });

const body = (requests: fc.Arbitrary<Tree>): fc.Arbitrary<Open> =>
  fc.record({
    requests: fc.array(requests, { minLength: 1, maxLength: 8, size: 'max' }),
    camelCase: mostly(fc.constant(false), fc.constant(true)),
  });

/** Watches from now on, or from later. */
const ofTheFuture = create(mostly(behind(-4, -1), integer(0)));

/**
 * Watches that begin in the past. etcd catches up every 100 ms: what comes behind them in the same body could be answered before or after
 * their events. So these bodies contain nothing else.
 */
const ofThePast = create(mostly(behind(0, 10), fc.oneof(integer(0, 1, -1, -9), behind(-2, -1))));

export const opens: fc.Arbitrary<Open> = fc.oneof(
  body(
    fc.oneof(
      { weight: 6, arbitrary: ofTheFuture },
      { weight: 2, arbitrary: cancel },
      { weight: 1, arbitrary: progress },
      { weight: 1, arbitrary: fc.constant<Tree>({}) },
    ),
  ),
  body(ofThePast),
);
