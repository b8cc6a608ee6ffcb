import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, test } from 'vitest';
import { moment } from '../support/stalls/stalls.mjs';
import { Contest, isAppend, isPoll, isRemoval, OURS } from './contest.ts';
import { ELECTED, recovered, silent } from './recovered.ts';
import { roles, servedBy, useCluster } from './use-cluster.ts';

/** Milliseconds. */
const PAUSE = 10_000;
/** Seconds: holds and waits outlast the fault, and an election on a busy machine. The poll cap is a third of it. */
const TTL = 15;
/** Seconds, for entries that are to be lost, but not a second time. */
const SHORT_TTL = 9;

describe('the leader is paused', () => {
  const cluster = useCluster();

  test.for(OURS)(
    'a lock released during the pause goes to %s, a waiter that the leader served',
    async (kind, context) => {
      const { leader, follower } = await roles(cluster());
      const contest = new Contest(cluster());
      const holder = await contest.take('LockManager.request', { by: servedBy(follower, cluster()), ttl: TTL });
      const { taken: waiting } = await contest.wait(kind, { by: servedBy(leader, cluster()), ttl: TTL });
      await leader.etcd.pause();
      await cluster().leader();
      await holder.give();
      const released = moment();
      const next = await waiting;
      recovered(context, { from: released, to: next.at, limit: silent(TTL) });
      leader.etcd.resume();
      await next.give();
      await contest.end();
    },
  );

  test.for(OURS)('a lock that %s releases through the paused leader goes to the next waiter', async (kind, context) => {
    const { leader, follower } = await roles(cluster());
    const contest = new Contest(cluster());
    const holder = await contest.take(kind, { by: servedBy(leader, cluster()), ttl: TTL });
    const { taken: waiting } = await contest.wait('Lock', { by: servedBy(follower, cluster()), ttl: TTL });
    await leader.etcd.pause();
    const releasing = holder.give();
    await contest.untilAsked([leader], isRemoval);
    await cluster().leader();
    const elected = moment();
    const next = await waiting;
    recovered(context, { from: elected, to: next.at, limit: ELECTED });
    await releasing;
    leader.etcd.resume();
    await leader.etcd.ready();
    await next.give();
    await contest.end();
  });

  test('a hold that is renewed survives a pause of 10 s, whichever member served the holder', async () => {
    const { leader, follower } = await roles(cluster());
    const contests = [leader, follower].flatMap((member) =>
      OURS.map((kind) => ({ contest: new Contest(cluster()), kind, member })),
    );
    const holds = await Promise.all(
      contests.map(({ contest, kind, member }) => contest.take(kind, { by: servedBy(member, cluster()), ttl: TTL })),
    );
    await leader.etcd.pause();
    await sleep(PAUSE);
    leader.etcd.resume();
    await Promise.all(contests.map(({ contest }) => contest.untilRenewed()));
    expect(holds.filter(({ signal }) => signal.aborted)).toEqual([]);
    await Promise.all(holds.map((held) => held.give()));
    await Promise.all(contests.map(({ contest }) => contest.end()));
  });

  test.for(OURS)(
    '%s makes one entry although it sends the append to the paused leader first',
    async (kind, context) => {
      const { leader } = await roles(cluster());
      const contest = new Contest(cluster());
      const terms = { by: servedBy(leader, cluster()), ttl: TTL };
      const client = await contest.ready(terms);
      await leader.etcd.pause();
      const taking = contest.take(kind, { ...terms, client, timeout: 15 });
      await contest.untilAsked([leader], isAppend);
      await cluster().leader();
      const elected = moment();
      const held = await taking;
      recovered(context, { from: elected, to: held.at, limit: ELECTED });
      leader.etcd.resume();
      // The resumed leader may now carry out the append that it received during the pause.
      await leader.etcd.ready();
      await held.give();
      await contest.end();
    },
  );

  test.for(OURS)(
    '%s, which knows no other member, loses its entry and does not acquire the lock with it later',
    async (kind) => {
      const { leader, follower } = await roles(cluster());
      const contest = new Contest(cluster());
      const holder = await contest.take('Lock', { by: servedBy(follower, cluster()), ttl: TTL });
      const waiting = contest.take(kind, { by: [leader], ttl: SHORT_TTL });
      await contest.untilAsked([leader], isPoll);
      await leader.etcd.pause();
      await cluster().leader();
      await contest.untilQueued(1);
      await holder.give();
      const next = await contest.take('Lock', { by: servedBy(follower, cluster()), ttl: TTL });
      leader.etcd.resume();
      await contest.handOnAfterLoss(kind, waiting, next);
      await contest.end();
    },
  );
});
