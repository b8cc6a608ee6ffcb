import type { Deadline } from '../../../base/time.ts';
import type { V3Client } from '../../../v3/client.ts';
import { queuesAmong } from '../../../v3/locks/reading.ts';
import type { V3Entry } from '../../../v3/rpc/entry.ts';
import { keyPrefixOf } from '../../../v3/rpc/keys.ts';
import { limitedBy } from './limited.ts';

/** Maximum number of leases whose TTL is read: each takes a request. */
const LEASES = 50;

/** All queues below the lock prefix. */
export interface QueueFacts {
  /** Names of the locks. */
  readonly names: readonly string[];
  /** Keys that have no lease. */
  readonly withoutLease: readonly string[];
  /** Leases of entries. */
  readonly leases: readonly string[];
}

/** Lists all locks. */
export async function readQueues(client: V3Client, deadline: Deadline): Promise<QueueFacts> {
  const { lockPrefix, requests } = client;
  const start = keyPrefixOf(lockPrefix);
  const { entries } = await requests.listings.readPrefix(start, limitedBy(deadline));
  const queues = queuesAmong(start, entries);
  return {
    names: [...queues.keys()],
    withoutLease: [...queues.values()].flatMap((queue) => withoutLeaseIn(queue, lockPrefix)),
    leases: [...new Set(entries.flatMap(({ lease }) => lease ?? []))],
  };
}

/**
 * Returns the keys without a lease in a queue. Without a lock prefix, keys of other programs look like queues. So a queue
 * without any lease is then ignored.
 */
const withoutLeaseIn = (queue: readonly V3Entry[], lockPrefix: string): string[] =>
  lockPrefix === '' && queue.every(({ lease }) => lease === undefined)
    ? []
    : queue.filter(({ lease }) => lease === undefined).map(({ key }) => key);

/** Reads the TTLs of the first leases, as they were granted, until the deadline. */
export const readTtls = (client: V3Client, leases: readonly string[], deadline: Deadline): Promise<number[]> =>
  client.gateway.call('safe', limitedBy(deadline), async (member) => {
    const ttls: number[] = [];
    for (const ID of leases.slice(0, LEASES)) {
      if (deadline.passed) break;
      const { fields } = await member.ask('/kv/lease/timetolive', { ID });
      ttls.push(Number(fields.integer('grantedTTL')));
    }
    // A lease that has ended since the listing has no TTL.
    return ttls.filter((ttl) => ttl > 0);
  });
