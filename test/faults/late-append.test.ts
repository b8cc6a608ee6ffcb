import { describe, expect, test } from 'vitest';
import { gate } from '../support/gate.ts';
import { queueOn, raw, useProxy } from '../support/locks.ts';
import type { ProxiedRequest } from '../support/proxy.ts';
import { moment } from '../support/stalls/stalls.mjs';
import { failed } from '../support/v2-answers.ts';
import { Contest, isAppend, isPoll, type Kind, OURS } from './contest.ts';
import { ELECTED, recovered } from './recovered.ts';
import { roles, servedBy, useCluster } from './use-cluster.ts';

/** Seconds. */
const TTL = 15;
/** etcd's answer some seconds after it has lost the quorum. */
const GIVEN_UP = { status: 500, body: failed(300, 'Raft Internal Error', 'etcdserver: request timed out') };

/** The isolated leader stays leader until it has the appends, also if this process stands still. */
const cluster = useCluster({ args: ['--election-timeout=4000'] });

test('an append that fails for lack of a quorum and is committed later leaves one entry', async (context) => {
  const { leader, follower, other } = await roles(cluster());
  follower.isolate();
  other.isolate();
  const takes = OURS.map((kind) => {
    const contest = new Contest(cluster());
    return { contest, taking: contest.take(kind, { by: servedBy(leader, cluster()), ttl: TTL, timeout: 60 }) };
  });
  for (const { contest } of takes) await contest.untilAsked([leader], isAppend);
  // The clients above may not wait for etcd's answer; this append does, so etcd has given up by then.
  const { name } = new Contest(cluster());
  const { status, body } = await raw('POST', `/_locks/${name}`, { value: 'late', ttl: '60' }, leader.etcd.url);
  expect([status, body['errorCode']]).toEqual([500, 300]);
  // Only the old leader can win this election: the appends make its log longer than the follower's.
  follower.rejoin();
  expect(await cluster().leader()).toBe(leader);
  const elected = moment();
  expect(await queueOn(name, leader.etcd.url)).toMatchObject([{ value: 'late' }]);
  for (const { contest, taking } of takes) {
    const held = await taking;
    recovered(context, { from: elected, to: held.at, limit: ELECTED });
    expect(await contest.queue()).toMatchObject([{ key: held.key }]);
    await held.give();
    await contest.end();
  }
});

describe('an append answered with code 300 is committed only after a second append', () => {
  async function queuedTwice(kind: Kind, contest: Contest) {
    const { follower } = await roles(cluster());
    const { opened: late, open } = gate();
    const proxy = await useProxy(follower.url);
    let first: ProxiedRequest | undefined;
    proxy.intercept((request) => {
      if (request.method !== 'POST' || first !== undefined) return undefined;
      first = request;
      return { late, ...GIVEN_UP };
    });
    const again = proxy.next((request) => request.method === 'POST' && request !== first, 'answered');
    const taking = contest.take(kind, { by: [{ ...follower, url: proxy.url }], ttl: 60 });
    await again;
    const commit = async () => {
      const committed = proxy.next((request) => request === first, 'answered');
      open();
      await committed;
    };
    return { taking, commit };
  }

  test.for(OURS)('while %s holds the lock: its release removes both entries', async (kind) => {
    const contest = new Contest(cluster());
    const { taking, commit } = await queuedTwice(kind, contest);
    const held = await taking;
    await commit();
    expect(await contest.queue()).toHaveLength(2);
    await held.give();
    expect(await contest.queue()).toEqual([]);
    await contest.end();
  });

  test.for(OURS)(
    'after %s has released the lock: the late entry is removed long before its TTL has passed',
    async (kind) => {
      const contest = new Contest(cluster());
      const { taking, commit } = await queuedTwice(kind, contest);
      await (await taking).give();
      await commit();
      await contest.untilQueued(0);
      await contest.end();
    },
  );

  test.for(OURS)('while %s waits: it acquires the lock with one entry and removes the other', async (kind) => {
    const { other } = await roles(cluster());
    const contest = new Contest(cluster());
    const holder = await contest.take('python-etcd', { by: [other], ttl: 60 });
    const { taking, commit } = await queuedTwice(kind, contest);
    await contest.untilAsked(cluster().members, isPoll);
    await commit();
    await contest.untilQueued(3);
    await holder.give();
    const next = await taking;
    expect(await contest.queue()).toMatchObject([{ key: next.key }]);
    await next.give();
    await contest.end();
  });
});
