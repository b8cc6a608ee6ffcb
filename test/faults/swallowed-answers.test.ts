import { describe, expect, test } from 'vitest';
import { moment } from '../support/stalls/stalls.mjs';
import { Contest, FOREIGN, isAppend, isListing, isPoll, isRemoval, OURS } from './contest.ts';
import { direct } from './lines.ts';
import { recovered, SHOWN, silent } from './recovered.ts';
import { STORE } from './stores/tested.ts';
import { roles, servedBy, useCluster } from './use-cluster.ts';

/**
 * Seconds: entries must survive on a busy machine. A third may pass before a renewal, and a tenth is margin. The poll cap is a third
 * of it.
 */
const TTL = 15;
/** Seconds: entries must survive an election. */
const LONG = 60;

const cluster = useCluster({ steady: true });

describe('etcd carries a request out, but its answer is lost', () => {
  test.for(OURS)('%s keeps the entry whose append was not answered, ahead of later entries', async (kind) => {
    const { follower, other } = await roles(cluster());
    const contest = new Contest(cluster());
    const holder = await contest.take('Lock', { by: [other], ttl: LONG });
    expect(appends(contest)).toBe(1);
    const swallowed = follower.proxy.swallow(isAppend);
    const waiting = contest.take(kind, { by: servedBy(follower, cluster()), ttl: LONG });
    await swallowed;
    const last = contest.take(FOREIGN, { by: [direct(other)], ttl: LONG });
    const [, entry] = await contest.untilQueued(3);
    await holder.give();
    const next = await waiting;
    expect(next.key).toBe(entry?.key);
    expect(await contest.queue()).toHaveLength(2);
    await next.give();
    await (await last).give();
    expect(appends(contest)).toBe(1 + STORE.appendsAfterLoss);
    await contest.end();
  });

  test('a hold is kept although the answer to its renewal is lost, whether or not the client knows another member', async () => {
    const { follower } = await roles(cluster());
    const holds = OURS.flatMap((kind) => [
      { kind, by: [follower] },
      { kind, by: servedBy(follower, cluster()) },
    ]);
    const kept = holds.map(async ({ kind, by }) => {
      const contest = new Contest(cluster());
      const held = await contest.take(kind, { by, ttl: TTL });
      expect(await follower.proxy.swallow(await contest.renewal())).toBe(200);
      for (let renewal = 0; renewal < 2; renewal += 1) await contest.untilRenewed();
      expect(held.signal.aborted).toBe(false);
      await held.give();
      await contest.end();
    });
    await Promise.all(kept);
  });

  test.for(OURS)(
    'a lock that %s releases goes to the next waiter at once, and is released once',
    async (kind, context) => {
      const { follower, other } = await roles(cluster());
      const contest = new Contest(cluster());
      const holder = await contest.take(kind, { by: servedBy(follower, cluster()), ttl: LONG });
      const waiting = contest.take(FOREIGN, { by: [other], ttl: LONG });
      await contest.untilQueued(2);
      const swallowed = follower.proxy.swallow(isRemoval);
      const giving = holder.give();
      expect(await swallowed).toBe(200);
      const released = moment();
      const next = await waiting;
      recovered(context, { from: released, to: next.at, limit: SHOWN });
      await giving;
      expect(await contest.queue()).toMatchObject([{ key: next.key }]);
      await next.give();
      await contest.end();
    },
  );

  test.for(OURS.flatMap((kind) => [[kind, 'event', isPoll] as const, [kind, 'listing', isListing] as const]))(
    '%s acquires the lock within a poll cap although an answer is lost: the %s',
    async ([kind, , missed], context) => {
      const { follower, other } = await roles(cluster());
      const contest = new Contest(cluster());
      const holder = await contest.take(FOREIGN, { by: [other], ttl: LONG });
      if (missed === isPoll) follower.proxy.swallow(isPoll);
      const { taken: waiting } = await contest.wait(kind, { by: servedBy(follower, cluster()), ttl: TTL });
      if (missed === isListing) follower.proxy.swallow(isListing);
      await holder.give();
      const released = moment();
      const next = await waiting;
      recovered(context, { from: released, to: next.at, limit: silent(TTL) });
      await next.give();
      await contest.end();
    },
  );
});

/** Number of appends for this lock that the proxies have received. */
const appends = ({ name }: Contest): number =>
  cluster()
    .members.flatMap(({ proxy }) => proxy.requests)
    .filter((request) => isAppend(request) && STORE.isAbout(request, name)).length;
