import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, test } from 'vitest';
import { EtcdLockTimeout } from '../../src/index.ts';
import { rejection } from '../support/locks.ts';
import { moment } from '../support/stalls/stalls.mjs';
import { Contest, FOREIGN, isAppend, isPoll, OURS } from './contest.ts';
import { direct, WAYS } from './lines.ts';
import { recovered, silent } from './recovered.ts';
import { roles, servedBy, useCluster } from './use-cluster.ts';

/** Seconds: waits outlast the fault, however busy the machine. The poll cap is a third of it. */
const TTL = 15;
/** Milliseconds: the fault outlasts a renewal, which starts after five seconds and may take two and a half. */
const PAST_RENEWAL = 7500;

const cluster = useCluster({ steady: true });

describe.for(WAYS)('the network between a waiter and its member dies silently (lost: %s)', (way) => {
  test.for(OURS)('a lock released through another member goes to %s within a poll cap', async (kind, context) => {
    const { follower, other } = await roles(cluster());
    const contest = new Contest(cluster());
    const holder = await contest.take(FOREIGN, { by: [other], ttl: 60 });
    const { taken: waiting } = await contest.wait(kind, { by: servedBy(follower, cluster()), ttl: TTL });
    follower.proxy.blackHole(way);
    await holder.give();
    const released = moment();
    const next = await waiting;
    recovered(context, { from: released, to: next.at, limit: silent(TTL) });
    await next.give();
    await contest.end();
  });

  test('waiters that know no other member keep their entries and acquire the lock after the fault', async (context) => {
    const { follower } = await roles(cluster());
    const waits = await Promise.all(
      OURS.map(async (kind) => {
        const contest = new Contest(cluster());
        const holder = await contest.take('Lock', { by: [direct(follower)], ttl: TTL });
        const waiting = contest.take(kind, { by: [follower], ttl: TTL });
        const [, entry] = await contest.untilQueued(2);
        await contest.untilAsked([follower], isPoll);
        return { contest, holder, waiting, entry };
      }),
    );
    follower.proxy.blackHole(way);
    await sleep(PAST_RENEWAL);
    await Promise.all(waits.map(({ holder }) => holder.give()));
    follower.proxy.heal();
    const healed = moment();
    for (const { contest, waiting, entry } of waits) {
      const next = await waiting;
      recovered(context, { from: healed, to: next.at, limit: silent(TTL) });
      expect(next.key).toBe(entry?.key);
      await next.give();
      await contest.end();
    }
  });
});

test.for(OURS)(
  '%s acquires the lock after a release event on a connection that has lost its requests',
  async (kind, context) => {
    const { follower, other } = await roles(cluster());
    const contest = new Contest(cluster());
    const holder = await contest.take('Lock', { by: [other], ttl: TTL });
    const { taken: waiting } = await contest.wait(kind, { by: servedBy(follower, cluster()), ttl: TTL });
    follower.proxy.blackHole('requests');
    await holder.give();
    const released = moment();
    const next = await waiting;
    recovered(context, { from: released, to: next.at, limit: silent(TTL) });
    await next.give();
    await contest.end();
  },
);

test.for(WAYS)(
  'calls that begin while the network is silent (lost: %s) end by their timeout and leave no key',
  async (way) => {
    const { follower } = await roles(cluster());
    const contest = new Contest(cluster());
    const terms = { by: [follower], ttl: 60 };
    const clients = await Promise.all(OURS.map(() => contest.ready(terms)));
    follower.proxy.blackHole(way);
    for (const error of await Promise.all(
      OURS.map((kind, i) => rejection(contest.take(kind, { ...terms, client: clients[i], timeout: 3 }))),
    ))
      expect(error).toBeInstanceOf(EtcdLockTimeout);
    await contest.untilAsked([follower], isAppend, 2);
    follower.proxy.heal();
    // Long before the TTL has passed.
    await contest.untilQueued(0);
    await contest.end();
  },
);
