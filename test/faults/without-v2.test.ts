import { describe, expect, test } from 'vitest';
import { EtcdUnusableAnswer } from '../../src/index.ts';
import { rejection } from '../support/locks.ts';
import { moment } from '../support/stalls/stalls.mjs';
import { until } from '../support/until.ts';
import { Contest, isPoll, KINDS, OURS } from './contest.ts';
import type { FaultCluster, FaultMember } from './fault-cluster.ts';
import { recovered, SHOWN } from './recovered.ts';
import { roles, servedBy, useCluster } from './use-cluster.ts';

/** Seconds: a renewal is sent every 4 s. Long, because a busy machine may take seconds to restart the member. */
const TTL = 12;

const cluster = useCluster({ steady: true });

describe('a member is restarted without --enable-v2', () => {
  test('holders and waiters that it served keep their entries through other members', async (context) => {
    const { follower, other } = await roles(cluster());
    const by = servedBy(follower, cluster());
    const turns = await Promise.all(
      OURS.flatMap((kind) =>
        KINDS.map(async (first) => {
          const contest = new Contest(askedBy(other));
          // python-etcd does not skip such a member.
          const holder = await contest.take(
            first,
            first === 'python-etcd' ? { by: [other], ttl: 60 } : { by, ttl: TTL },
          );
          const waiting = contest.take(kind, { by, ttl: TTL });
          await contest.untilAsked([follower], isPoll);
          return { contest, first, holder, waiting };
        }),
      ),
    );
    await withoutV2(follower, async () => {
      await Promise.all(
        turns.map(({ contest, first }) => (first === 'python-etcd' ? undefined : contest.untilRenewed())),
      );
      const handovers = turns.map(async ({ contest, holder, waiting }) => {
        expect(holder.signal.aborted).toBe(false);
        await holder.give();
        const released = moment();
        const next = await waiting;
        recovered(context, { from: released, to: next.at, limit: SHOWN });
        await next.give();
        await contest.end();
      });
      await Promise.all(handovers);
    });
  });

  test.for(OURS)(
    '%s acquires the lock through the next endpoint; without another endpoint the error names the flag',
    async (kind, context) => {
      const { follower, other } = await roles(cluster());
      await withoutV2(follower, async () => {
        const contest = new Contest(askedBy(other));
        const holder = await contest.take('python-etcd', { by: [other], ttl: 60 });
        const waiting = contest.take(kind, { by: servedBy(follower, cluster()), ttl: TTL });
        await contest.untilQueued(2);
        const error = await rejection(contest.take(kind, { by: [follower], ttl: TTL, timeout: 5 }));
        expect(error).toBeInstanceOf(EtcdUnusableAnswer);
        expect(error).toHaveProperty('message', expect.stringContaining('--enable-v2'));
        await holder.give();
        const released = moment();
        const next = await waiting;
        recovered(context, { from: released, to: next.at, limit: SHOWN });
        await next.give();
        await contest.end();
      });
    },
  );
});

/** The cluster with its queues read through this member: the leader may be the one without v2. */
const askedBy = (member: FaultMember): FaultCluster => ({ ...cluster(), leader: async () => member });

async function withoutV2({ etcd }: FaultMember, work: () => Promise<void>): Promise<void> {
  await etcd.restart({ wait: false, args: ['--enable-v2=false'] });
  try {
    await until(
      () => statusOf(etcd.url),
      (status) => status === 404,
    );
    await work();
  } finally {
    await etcd.restart({ args: ['--enable-v2'] });
  }
}

/** HTTP status of a read of its keys; undefined without an answer. */
async function statusOf(url: string): Promise<number | undefined> {
  return fetch(`${url}/v2/keys/`).then(
    ({ status }) => status,
    () => undefined,
  );
}
