import { describe, expect, test } from 'vitest';
import { EtcdException, EtcdUnusableAnswer, Lock } from '../../src/index.ts';
import { rejection, useClient } from '../support/locks.ts';
import { Contest, isPoll, OURS } from './contest.ts';
import { IMPOSTORS, portal } from './impostors.ts';
import { recovered, silent } from './recovered.ts';
import { roles, servedBy, useCluster } from './use-cluster.ts';

/** Seconds: the cap of a poll is 2. */
const TTL = 6;
/** Seconds: an attempt to renew gets half a second. */
const SHORT_TTL = 3;

const cluster = useCluster();

describe.for(Object.entries(IMPOSTORS))('among the endpoints is %s', ([, start]) => {
  test('those who begin with it queue up once, and go on', async (context) => {
    const { follower, other } = await roles(cluster());
    const by = [{ ...follower, url: await start() }, ...servedBy(follower, cluster())];
    const turns = OURS.map(async (kind) => {
      const contest = new Contest(cluster());
      const holder = await contest.take('python-etcd', { by: [other], ttl: 60 });
      const waiting = contest.take(kind, { by, ttl: TTL });
      await contest.untilAsked([follower], isPoll);
      expect(await contest.queue()).toHaveLength(2);
      await holder.give();
      const released = performance.now();
      const next = await waiting;
      recovered(context, { from: released, to: next.at, limit: silent(TTL) });
      await next.give();
      await contest.end();
    });
    await Promise.all(turns);
  });

  test('those whose member refuses them pass it over, whether they wait or hold', async (context) => {
    const { follower, other } = await roles(cluster());
    const by = [follower, { ...follower, url: await start() }, other];
    const turns = await Promise.all(
      OURS.map(async (kind) => {
        const contest = new Contest(cluster());
        const holder = await contest.take(kind, { by, ttl: SHORT_TTL });
        const waiting = contest.take(kind, { by, ttl: TTL });
        await contest.untilQueued(2);
        await contest.untilAsked([follower], isPoll);
        return { contest, holder, waiting };
      }),
    );
    follower.proxy.refuse();
    follower.proxy.cut();
    const handedOn = turns.map(async ({ contest, holder, waiting }) => {
      for (let renewals = 0; renewals < 2; renewals += 1) await contest.untilRenewed();
      expect(holder.signal.aborted).toBe(false);
      await holder.give();
      const released = performance.now();
      const next = await waiting;
      recovered(context, { from: released, to: next.at, limit: silent(TTL) });
      await next.give();
      await contest.end();
    });
    await Promise.all(handedOn);
  });
});

test('those who know impostors only are told so by their timeout, or at once, with the address', async () => {
  const { follower } = await roles(cluster());
  const contest = new Contest(cluster());
  const told = Object.values({ ...IMPOSTORS, portal }).flatMap((start) =>
    OURS.map(async (kind) => {
      const url = await start();
      const error = await rejection(contest.take(kind, { by: [{ ...follower, url }], ttl: TTL, timeout: 3 }));
      expect(error).toBeInstanceOf(EtcdException);
      expect(error).toHaveProperty('message', expect.stringContaining(url));
    }),
  );
  await Promise.all(told);
  expect(await contest.queue()).toEqual([]);
});

test('whoever finds a page first that says yes to everything is told so, leaves no key, and then gets the lock', async () => {
  const { follower, other } = await roles(cluster());
  const url = await portal();
  const lock = new Lock(useClient({ endpoints: [url, follower.url, other.url] }), new Contest(cluster()).name);
  const error = await rejection(lock.acquire({ lockTtl: TTL, timeout: 3 }));
  expect(error).toBeInstanceOf(EtcdUnusableAnswer);
  expect(error).toHaveProperty('message', expect.stringContaining(url));
  expect(await lock.acquire({ lockTtl: TTL, timeout: 3 })).toBe(true);
  expect(await lock.contenders()).toMatchObject([{ key: lock.lockKey }]);
  await lock.release();
  expect(await lock.contenders()).toEqual([]);
});
