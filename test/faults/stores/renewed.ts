import { until } from '../../support/until.ts';
import type { FaultMember } from '../fault-cluster.ts';
import type { Request } from '../tcp-proxy.ts';

/** Milliseconds between two reads of the queue. Some tests wait for many renewals at a time, in the process of their clients. */
const READ_EVERY = 1000;

/** Resolves once another request that renews the entry has been received, or once it is replaced, as `isReplaced` reads it. */
export async function untilRenewed(
  members: readonly FaultMember[],
  renews: (request: Request) => boolean,
  isReplaced: () => Promise<boolean>,
): Promise<void> {
  const renewals = () => members.flatMap(({ proxy }) => proxy.requests).filter(renews).length;
  const before = renewals();
  await until(isReplaced, (replaced) => replaced || renewals() > before, { every: READ_EVERY });
}
