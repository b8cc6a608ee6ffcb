import { inject, test } from 'vitest';
import { expectKept } from '../support/blocked-holder.ts';

/** Share of the TTL up to which a hold is kept. */
const BOUND = 1 / 8;

test.concurrent.for([
  [6, 0.1],
  [6, 0.6],
  [15, 1.3],
  [15, 1.8],
  [30, 2.6],
] as const)(
  'a hold with a TTL of %i s is kept while the event loop is blocked for %f s again and again',
  { timeout: 90_000 },
  ([ttl, slice], context) => expectKept(context, { etcd: inject('etcd'), ttl, slice }, BOUND),
);
