import { inject, test } from 'vitest';
import { expectKept } from '../../support/blocked-holder.ts';

/** A hold survives blocks of the event loop of up to this fraction of its TTL. */
const BOUND = 1 / 8;

test.concurrent.for([
  [6, 0.1],
  [6, 0.6],
  [15, 1.3],
  [15, 1.8],
  [30, 2.6],
] as const)(
  'a hold with a TTL of %i s is kept while the event loop is repeatedly blocked for %f s',
  { timeout: 90_000 },
  ([ttl, slice], context) => expectKept(context, { etcd: inject('etcd'), ttl, slice }, BOUND),
);
