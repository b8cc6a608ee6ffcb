import { describe, expect, test } from 'vitest';
import { moment } from '../support/stalls/stalls.mjs';
import { Contest, FOREIGN, isAppend, isPoll, OURS, SEEN } from './contest.ts';
import { ELECTED, recovered, SHOWN } from './recovered.ts';
import { roles, servedBy, useCluster } from './use-cluster.ts';

const TTL = 15;

describe('the leader is killed', () => {
  const cluster = useCluster();

  test.for([...SEEN.map((waiter) => ['LockManager.request', waiter] as const), [FOREIGN, 'Lock'] as const])(
    'a lock that %s releases after the election goes to %s, a waiter that the killed leader had served',
    async ([first, second], context) => {
      const { leader, follower, other } = await roles(cluster());
      const contest = new Contest(cluster());
      const holder = await contest.take(first, { by: servedBy(follower, cluster()), ttl: TTL });
      const { taken: waiting } = await contest.wait(second, { by: servedBy(leader, cluster()), ttl: TTL });
      await leader.etcd.kill();
      await contest.untilAsked([follower, other], isPoll);
      await cluster().leader();
      await holder.give();
      const released = moment();
      const next = await waiting;
      recovered(context, { from: released, to: next.at, limit: SHOWN });
      await leader.etcd.restart();
      await next.give();
      await contest.end();
    },
  );

  test.for(OURS)('a lock released before the election of a new leader goes to %s after it', async (kind, context) => {
    const { leader, follower } = await roles(cluster());
    const contest = new Contest(cluster());
    const holder = await contest.take('LockManager.request', { by: servedBy(leader, cluster()), ttl: TTL });
    const { taken: waiting } = await contest.wait(kind, { by: servedBy(follower, cluster()), ttl: TTL });
    await leader.etcd.kill();
    const releasing = holder.give();
    await cluster().leader();
    const elected = moment();
    const next = await waiting;
    recovered(context, { from: elected, to: next.at, limit: ELECTED });
    await releasing;
    await next.give();
    await contest.end();
  });

  test('a hold that is renewed is not lost, whichever member served the holder', async () => {
    const { leader, follower } = await roles(cluster());
    const contests = await Promise.all(
      [leader, follower].flatMap((member) =>
        OURS.map(async (kind) => {
          const contest = new Contest(cluster());
          return { contest, held: await contest.take(kind, { by: servedBy(member, cluster()), ttl: TTL }) };
        }),
      ),
    );
    await leader.etcd.kill();
    await cluster().leader();
    await Promise.all(contests.map(({ contest }) => contest.untilRenewed()));
    for (const { contest, held } of contests) {
      expect(held.signal.aborted).toBe(false);
      await held.give();
      await contest.end();
    }
  });

  test.for(OURS.flatMap((kind) => [[kind, 'carried out'] as const, [kind, 'lost'] as const]))(
    '%s makes one entry although the leader is killed during the append (request %s)',
    async ([kind, fate], context) => {
      const { leader } = await roles(cluster());
      const contest = new Contest(cluster());
      const terms = { by: servedBy(leader, cluster()), ttl: TTL };
      const client = await contest.ready(terms);
      const answered = fate === 'carried out' ? leader.proxy.swallow(isAppend) : undefined;
      if (fate === 'lost') leader.proxy.blackHole('requests');
      const taking = contest.take(kind, { ...terms, client, timeout: 15 });
      await contest.untilAsked([leader], isAppend);
      await answered;
      await leader.etcd.kill();
      leader.proxy.cut();
      await cluster().leader();
      const elected = moment();
      const held = await taking;
      recovered(context, { from: elected, to: held.at, limit: ELECTED });
      expect(await contest.queue()).toMatchObject([{ key: held.key }]);
      await held.give();
      await contest.end();
    },
  );
});
