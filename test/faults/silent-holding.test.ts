import { describe, expect, test } from 'vitest';
import { moment } from '../support/stalls/stalls.mjs';
import { Contest, FOREIGN, isAppend, isPoll, isRemoval, OURS } from './contest.ts';
import { direct, WAYS } from './lines.ts';
import { died, recovered, silent } from './recovered.ts';
import { STORE } from './stores/tested.ts';
import { roles, servedBy, useCluster } from './use-cluster.ts';

/** Seconds: a renewal is sent every 2 s. */
const TTL = 6;

/** A hand-over to python-etcd, whose poll the proxies see. */
const FOREIGN_WAITER = STORE.api === 'v2' ? [['LockManager.request', FOREIGN] as const] : [];

const cluster = useCluster({ steady: true });

describe.for(WAYS)('the network to a member dies silently (lost: %s)', (way) => {
  test('holders renew through another member', async () => {
    const { follower } = await roles(cluster());
    const holds = await Promise.all(
      OURS.map(async (kind) => {
        const contest = new Contest(cluster());
        return { contest, held: await contest.take(kind, { by: servedBy(follower, cluster()), ttl: TTL }) };
      }),
    );
    follower.proxy.blackHole(way);
    // The first renewal may still have been carried out over the old connection.
    for (let renewals = 0; renewals < 2; renewals += 1)
      await Promise.all(holds.map(({ contest }) => contest.untilRenewed()));
    for (const { contest, held } of holds) {
      expect(held.signal.aborted).toBe(false);
      await held.give();
      await contest.end();
    }
  });

  test.for([...OURS.map((kind) => [kind, 'Lock'] as const), ...FOREIGN_WAITER])(
    'a lock that %s releases through that member goes to %s',
    async ([first, second], context) => {
      const { follower, other } = await roles(cluster());
      const contest = new Contest(cluster());
      const holder = await contest.take(first, { by: servedBy(follower, cluster()), ttl: 60 });
      const waiting = contest.take(second, { by: [other], ttl: TTL });
      await contest.untilAsked([other], isPoll);
      follower.proxy.blackHole(way);
      const asked = moment();
      await holder.give();
      const next = await waiting;
      recovered(context, { from: asked, to: next.at, limit: silent(TTL) });
      await contest.untilAsked([follower], isRemoval);
      await next.give();
      await contest.end();
    },
  );

  test.for(OURS)('%s makes one entry and acquires the lock with it', async (kind) => {
    const { follower, other } = await roles(cluster());
    const contest = new Contest(cluster());
    const holder = await contest.take(FOREIGN, { by: [other], ttl: 60 });
    const terms = { by: servedBy(follower, cluster()), ttl: TTL };
    const client = await contest.ready(terms);
    const waiting = contest.take(kind, { ...terms, client, timeout: 15 });
    follower.proxy.blackHole(way);
    await contest.untilAsked([follower], isAppend);
    await contest.untilAsked(cluster().members, isPoll);
    const [, entry, ...more] = await contest.queue();
    expect(more).toEqual([]);
    await holder.give();
    const next = await waiting;
    expect(next.key).toBe(entry?.key);
    await next.give();
    await contest.end();
  });

  test('holders without a working connection are notified of the loss before another client holds', async (context) => {
    const { members } = cluster();
    const contests = await Promise.all(
      OURS.map(async (kind) => {
        const contest = new Contest(cluster());
        const holder = await contest.take(kind, { by: members, ttl: TTL });
        const waiting = contest.take('Lock', { by: members.map(direct), ttl: TTL });
        await contest.untilQueued(2);
        return { contest, holder, waiting };
      }),
    );
    const cut = moment();
    for (const { proxy } of members) proxy.blackHole(way);
    const releases: Promise<void>[] = [];
    const successions = contests.map(async ({ holder, waiting }) => {
      const lost = new Promise((resolve) => holder.signal.addEventListener('abort', resolve, { once: true }));
      // `Contest` fails if the next waiter holds before the holder is notified of the loss.
      releases.push(lost.then(() => holder.give()).catch(() => {}));
      const next = await waiting;
      // If only the answers are lost, etcd carries out the next renewal, and the TTL counts from it.
      recovered(context, { from: cut, to: next.at, limit: died(TTL) + (way === 'answers' ? TTL / 3 : 0) });
      await next.give();
    });
    await Promise.all(successions);
    for (const { proxy } of members) proxy.heal();
    await Promise.all(releases);
    for (const { contest } of contests) await contest.end();
  });
});
