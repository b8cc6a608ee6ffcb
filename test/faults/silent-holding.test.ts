import { describe, expect, test } from 'vitest';
import { moment } from '../support/stalls/stalls.mjs';
import { Contest, isAppend, isPoll, isRemoval, OURS } from './contest.ts';
import { direct, WAYS } from './lines.ts';
import { died, recovered, silent } from './recovered.ts';
import { roles, servedBy, useCluster } from './use-cluster.ts';

/** Seconds: renewals come every two. */
const TTL = 6;

const cluster = useCluster({ steady: true });

describe.for(WAYS)('a line silently loses this way: %s', (way) => {
  test('holds are renewed by another member', async () => {
    const { follower } = await roles(cluster());
    const holds = await Promise.all(
      OURS.map(async (kind) => {
        const contest = new Contest(cluster());
        return { contest, held: await contest.take(kind, { by: servedBy(follower, cluster()), ttl: TTL }) };
      }),
    );
    follower.proxy.blackHole(way);
    // The first one may still have been carried out by the old line.
    for (let renewals = 0; renewals < 2; renewals += 1)
      await Promise.all(holds.map(({ contest }) => contest.untilRenewed()));
    for (const { contest, held } of holds) {
      expect(held.signal.aborted).toBe(false);
      await held.give();
      await contest.end();
    }
  });

  test.for([...OURS.map((kind) => [kind, 'Lock'] as const), ['LockManager.request', 'python-etcd'] as const])(
    'a lock that %s releases by it goes to %s',
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

  test.for(OURS)('%s queues up once by another member', async (kind) => {
    const { follower, other } = await roles(cluster());
    const contest = new Contest(cluster());
    const holder = await contest.take('python-etcd', { by: [other], ttl: 60 });
    const waiting = contest.take(kind, { by: servedBy(follower, cluster()), ttl: TTL, timeout: 15 });
    follower.proxy.blackHole(way);
    await contest.untilAsked([follower], isAppend);
    await contest.untilAsked(cluster().members, isPoll);
    const [, place, ...more] = await contest.queue();
    expect(more).toEqual([]);
    await holder.give();
    const next = await waiting;
    expect(next.key).toBe(place?.key);
    await next.give();
    await contest.end();
  });

  test('holders of whom every line is like that are told lost before another can hold', async (context) => {
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
    const givings: Promise<void>[] = [];
    const successions = contests.map(async ({ holder, waiting }) => {
      const lost = new Promise((resolve) => holder.signal.addEventListener('abort', resolve, { once: true }));
      // `Contest` fails where the next one holds before the loss is told.
      givings.push(lost.then(() => holder.give()).catch(() => {}));
      const next = await waiting;
      // Where only the answers are lost, the next renewal is carried out, and the TTL counts from it.
      recovered(context, { from: cut, to: next.at, limit: died(TTL) + (way === 'answers' ? TTL / 3 : 0) });
      await next.give();
    });
    await Promise.all(successions);
    for (const { proxy } of members) proxy.heal();
    await Promise.all(givings);
    for (const { contest } of contests) await contest.end();
  });
});
