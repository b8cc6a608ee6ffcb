import { describe, expect, test } from 'vitest';
import { moment } from '../support/stalls/stalls.mjs';
import { Contest, isAppend, isPoll, isRemoval, OURS, SEEN } from './contest.ts';
import { recovered, SHOWN } from './recovered.ts';
import { roles, servedBy, useCluster } from './use-cluster.ts';

const TTL = 15;

describe('the follower that serves a client is killed', () => {
  const cluster = useCluster({ steady: true });

  test.for(SEEN)(
    'a lock that is released right after the kill goes to a waiter that the follower served: %s',
    async (kind, context) => {
      const { leader, follower } = await roles(cluster());
      const contest = new Contest(cluster());
      const holder = await contest.take('Lock', { by: servedBy(leader, cluster()), ttl: TTL });
      const { taken: waiting } = await contest.wait(kind, { by: servedBy(follower, cluster()), ttl: TTL });
      await follower.etcd.kill();
      await holder.give();
      const released = moment();
      const next = await waiting;
      recovered(context, { from: released, to: next.at, limit: SHOWN });
      await next.give();
      await contest.end();
    },
  );

  test.for(OURS.flatMap((kind) => [[kind, 'carried out'] as const, [kind, 'lost'] as const]))(
    'a waiter acquires the lock although the follower is killed during the release by %s (request %s)',
    async ([kind, fate], context) => {
      const { leader, follower } = await roles(cluster());
      const contest = new Contest(cluster());
      const holder = await contest.take(kind, { by: servedBy(follower, cluster()), ttl: TTL });
      const { taken: waiting } = await contest.wait('LockManager.request', {
        by: servedBy(leader, cluster()),
        ttl: TTL,
      });
      const answered = fate === 'carried out' ? follower.proxy.swallow(isRemoval) : undefined;
      if (fate === 'lost') follower.proxy.blackHole('requests');
      const releasing = holder.give();
      await contest.untilAsked([follower], isRemoval);
      await answered;
      await follower.etcd.kill();
      // A dead member drops nothing silently.
      follower.proxy.heal();
      follower.proxy.cut();
      const shown = moment();
      const next = await waiting;
      recovered(context, { from: shown, to: next.at, limit: SHOWN });
      await releasing;
      await next.give();
      await contest.end();
    },
  );

  test.for(OURS.flatMap((kind) => [[kind, 'carried out'] as const, [kind, 'lost'] as const]))(
    '%s makes one entry although the follower is killed during the append (request %s)',
    async ([kind, fate], context) => {
      const { follower } = await roles(cluster());
      const contest = new Contest(cluster());
      const terms = { by: servedBy(follower, cluster()), ttl: TTL };
      const client = await contest.ready(terms);
      const answered = fate === 'carried out' ? follower.proxy.swallow(isAppend) : undefined;
      if (fate === 'lost') follower.proxy.blackHole('requests');
      const taking = contest.take(kind, { ...terms, client, timeout: 10 });
      await contest.untilAsked([follower], isAppend);
      await answered;
      await follower.etcd.kill();
      // A dead member drops nothing silently.
      follower.proxy.heal();
      follower.proxy.cut();
      const shown = moment();
      const held = await taking;
      recovered(context, { from: shown, to: held.at, limit: SHOWN });
      expect(await contest.queue()).toMatchObject([{ key: held.key }]);
      await held.give();
      await contest.end();
    },
  );

  test('a hold that is renewed is not lost', async () => {
    const { follower } = await roles(cluster());
    const contests = OURS.map((kind) => ({ kind, contest: new Contest(cluster()) }));
    const holds = await Promise.all(
      contests.map(({ kind, contest }) => contest.take(kind, { by: servedBy(follower, cluster()), ttl: TTL })),
    );
    await follower.etcd.kill();
    await Promise.all(contests.map(({ contest }) => contest.untilRenewed()));
    expect(holds.map(({ signal }) => signal.aborted)).toEqual([false, false]);
    await Promise.all(holds.map((held) => held.give()));
    await Promise.all(contests.map(({ contest }) => contest.end()));
  });

  test('after its restart the follower serves a waiter that knows no other member, in queue order', async (context) => {
    const { leader, follower } = await roles(cluster());
    const contest = new Contest(cluster());
    const holder = await contest.take('Lock', { by: servedBy(leader, cluster()), ttl: TTL });
    const first = contest.take('LockManager.request', { by: [follower], ttl: TTL });
    await contest.untilAsked([follower], isPoll);
    await follower.etcd.kill();
    const second = contest.take('Lock', { by: servedBy(leader, cluster()), ttl: TTL });
    await contest.untilQueued(3);
    await follower.etcd.restart();
    await holder.give();
    const released = moment();
    const next = await first;
    recovered(context, { from: released, to: next.at, limit: SHOWN });
    await next.give();
    await (await second).give();
    await contest.end();
  });
});
