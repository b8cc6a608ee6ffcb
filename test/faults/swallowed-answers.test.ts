import { describe, expect, test } from 'vitest';
import { Contest, isAppend, isPoll, isRemoval, isRenewal, OURS } from './contest.ts';
import { direct } from './lines.ts';
import { recovered, SHOWN, silent } from './recovered.ts';
import type { RequestHead } from './tcp-proxy.ts';
import { roles, servedBy, useCluster } from './use-cluster.ts';

/** Seconds: the cap of a poll is 2. */
const TTL = 6;

const cluster = useCluster();

describe('etcd does what it is asked, and its answer never comes', () => {
  test.for(OURS)('%s keeps the place it was given, before those who came later', async (kind) => {
    const { follower, other } = await roles(cluster());
    const contest = new Contest(cluster());
    const holder = await contest.take('Lock', { by: [other], ttl: 60 });
    expect(appends(contest)).toBe(1);
    const swallowed = follower.proxy.swallow(isAppend);
    const waiting = contest.take(kind, { by: servedBy(follower, cluster()), ttl: TTL });
    expect(await swallowed).toBe(201);
    const last = contest.take('python-etcd', { by: [direct(other)], ttl: 60 });
    const [, place] = await contest.untilQueued(3);
    await holder.give();
    const next = await waiting;
    expect(next.key).toBe(place?.key);
    expect(await contest.queue()).toHaveLength(2);
    await next.give();
    await (await last).give();
    expect(appends(contest)).toBe(2);
    await contest.end();
  });

  test('holds are kept whose renewal is like that, whether or not they know another member', async () => {
    const { follower } = await roles(cluster());
    const holds = OURS.flatMap((kind) => [
      { kind, by: [follower] },
      { kind, by: servedBy(follower, cluster()) },
    ]);
    const kept = holds.map(async ({ kind, by }) => {
      const contest = new Contest(cluster());
      const swallowed = follower.proxy.swallow((request) => isRenewal(request) && request.path.includes(contest.name));
      const held = await contest.take(kind, { by, ttl: TTL });
      expect(await swallowed).toBe(200);
      for (let renewal = 0; renewal < 2; renewal += 1) await contest.untilRenewed();
      expect(held.signal.aborted).toBe(false);
      await held.give();
      await contest.end();
    });
    await Promise.all(kept);
  });

  test.for(OURS)('a lock that %s releases goes on at once, and is released once', async (kind, context) => {
    const { follower, other } = await roles(cluster());
    const contest = new Contest(cluster());
    const holder = await contest.take(kind, { by: servedBy(follower, cluster()), ttl: 60 });
    const waiting = contest.take('python-etcd', { by: [other], ttl: 60 });
    await contest.untilQueued(2);
    const swallowed = follower.proxy.swallow(isRemoval);
    const giving = holder.give();
    expect(await swallowed).toBe(200);
    const released = performance.now();
    const next = await waiting;
    recovered(context, { from: released, to: next.at, limit: SHOWN });
    await giving;
    expect(await contest.queue()).toMatchObject([{ key: next.key }]);
    await next.give();
    await contest.end();
  });

  test.for(OURS.flatMap((kind) => [[kind, 'event', isPoll] as const, [kind, 'listing', isListing] as const]))(
    '%s goes on within a poll though it misses this: the %s',
    async ([kind, , missed], context) => {
      const { follower, other } = await roles(cluster());
      const contest = new Contest(cluster());
      const holder = await contest.take('python-etcd', { by: [other], ttl: 60 });
      if (missed === isPoll) follower.proxy.swallow(isPoll);
      const waiting = contest.take(kind, { by: servedBy(follower, cluster()), ttl: TTL });
      await contest.untilAsked([follower], isPoll);
      if (missed === isListing) follower.proxy.swallow(isListing);
      await holder.give();
      const released = performance.now();
      const next = await waiting;
      recovered(context, { from: released, to: next.at, limit: silent(TTL) });
      await next.give();
      await contest.end();
    },
  );
});

const isListing = ({ method, path }: RequestHead): boolean => method === 'GET' && path.includes('recursive=true');

/** How often the members were asked, by their proxies, for a place in the queue. */
const appends = ({ name }: Contest): number =>
  cluster()
    .members.flatMap(({ proxy }) => proxy.requests)
    .filter((request) => isAppend(request) && request.path.includes(name)).length;
