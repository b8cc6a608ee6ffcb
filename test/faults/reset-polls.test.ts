import { describe, expect, test } from 'vitest';
import { moment } from '../support/stalls/stalls.mjs';
import { until } from '../support/until.ts';
import { Contest, FOREIGN, isPoll, KINDS, OURS } from './contest.ts';
import { direct } from './lines.ts';
import { ELECTED, recovered, SHOWN } from './recovered.ts';
import { roles, servedBy, useCluster } from './use-cluster.ts';

const TTL = 15;

/** How often the connection is reset during one wait. */
const RESETS = 10;

const cluster = useCluster({ steady: true });

describe('the connection of a long poll is reset', () => {
  test.for(OURS.flatMap((waiter) => KINDS.map((holder) => [holder, waiter] as const)))(
    'a lock that %s releases right after the reset goes to %s',
    async ([first, second], context) => {
      const { follower, other } = await roles(cluster());
      const contest = new Contest(cluster());
      const holder = await contest.take(first, { by: [other], ttl: TTL });
      const { taken: waiting } = await contest.wait(second, { by: servedBy(follower, cluster()), ttl: TTL });
      follower.proxy.cut();
      await holder.give();
      const released = moment();
      const next = await waiting;
      recovered(context, { from: released, to: next.at, limit: SHOWN });
      await next.give();
      await contest.end();
    },
  );

  test.for(OURS)('%s keeps its entry however often its poll is reset', async (kind, context) => {
    const { follower, other } = await roles(cluster());
    const contest = new Contest(cluster());
    const holder = await contest.take(FOREIGN, { by: [direct(other)], ttl: 60 });
    const waiting = contest.take(kind, { by: servedBy(follower, cluster()), ttl: TTL });
    const [, entry] = await contest.untilQueued(2);
    for (let reset = 1; reset <= RESETS; reset += 1) {
      // After a reset the next poll may go to any member.
      await contest.untilAsked(cluster().members, isPoll, reset);
      for (const { proxy } of cluster().members) proxy.cut();
    }
    await holder.give();
    const released = moment();
    const next = await waiting;
    recovered(context, { from: released, to: next.at, limit: SHOWN });
    expect(next.key).toBe(entry?.key);
    await next.give();
    await contest.end();
  });

  test.for(OURS)('%s acquires the lock through a member that does not refuse connections', async (kind, context) => {
    const { follower, other } = await roles(cluster());
    const contest = new Contest(cluster());
    const holder = await contest.take('Lock', { by: [other], ttl: TTL });
    const { taken: waiting } = await contest.wait(kind, { by: servedBy(follower, cluster()), ttl: TTL });
    for (const { proxy } of cluster().members.filter((member) => member !== other)) {
      proxy.refuse();
      proxy.cut();
    }
    await holder.give();
    const released = moment();
    const next = await waiting;
    recovered(context, { from: released, to: next.at, limit: SHOWN });
    await next.give();
    await contest.end();
  });

  test.for(OURS)(
    '%s keeps its entry and acquires the lock once one member accepts connections again',
    async (kind, context) => {
      const { follower, other } = await roles(cluster());
      const contest = new Contest(cluster());
      const holder = await contest.take(FOREIGN, { by: [direct(other)], ttl: 60 });
      const { taken: waiting } = await contest.wait(kind, { by: servedBy(follower, cluster()), ttl: TTL });
      const [, entry] = await contest.untilQueued(2);
      for (const { proxy } of cluster().members) {
        proxy.refuse();
        proxy.cut();
      }
      await holder.give();
      await untilRefused();
      other.proxy.heal();
      // This ends an outage, so the limit after an election applies.
      const healed = moment();
      const next = await waiting;
      recovered(context, { from: healed, to: next.at, limit: ELECTED });
      expect(next.key).toBe(entry?.key);
      await next.give();
      await contest.end();
    },
  );
});

/** Resolves once every member has refused a few more connections. */
async function untilRefused(): Promise<void> {
  const { members } = cluster();
  const before = members.map(({ proxy }) => proxy.accepted);
  await until(
    () => members.map(({ proxy }, index) => proxy.accepted - (before[index] ?? 0)),
    (refused) => refused.every((count) => count >= 3),
  );
}
