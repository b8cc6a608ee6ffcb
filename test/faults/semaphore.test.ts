import { expect, test } from 'vitest';
import { LockManager } from '../../src/index.ts';
import { moment } from '../support/stalls/stalls.mjs';
import { Contest, isAppend, isListing, isPoll, isRemoval, isRenewal, openClient } from './contest.ts';
import type { FaultMember } from './fault-cluster.ts';
import { ELECTED, recovered } from './recovered.ts';
import { roles, servedBy, useCluster } from './use-cluster.ts';

const LIMIT = 2;
/** Seconds: a hold outlasts an election on a busy machine. */
const TTL = 15;

interface Fault {
  /** The member that it is about. */
  readonly of: 'leader' | 'follower';
  begin(member: FaultMember): unknown;
}

const FAULTS: Readonly<Record<string, Fault>> = {
  'the leader is killed': { of: 'leader', begin: ({ etcd }) => etcd.kill() },
  'the leader is paused': { of: 'leader', begin: ({ etcd }) => etcd.pause() },
  'a follower is isolated': { of: 'follower', begin: (member) => member.isolate() },
  'a member falls silent': { of: 'follower', begin: ({ proxy }) => proxy.blackHole('both') },
  'one answer of each kind is lost': {
    of: 'follower',
    begin({ proxy }) {
      for (const matches of [isAppend, isRenewal, isRemoval, isListing, isPoll]) void proxy.swallow(matches);
    },
  },
};

const cluster = useCluster();

test.for(Object.entries(FAULTS))(
  '%s: the holders of a semaphore are kept, and each release lets the next waiter in, in order',
  async ([, { of, begin }], context) => {
    const { [of]: member } = await roles(cluster());
    const endpoints = servedBy(member, cluster()).map(({ url }) => url);
    const contest = new Contest(cluster());
    const clients = Array.from({ length: 4 }, () => openClient({ endpoints }));
    const [one, two, ...others] = clients.map((client) => new LockManager(client, { ttl: TTL }));
    const acquire = (locks?: LockManager) => locks?.acquire(contest.name, { limit: LIMIT }) ?? expect.unreachable();
    const [first, second] = [await acquire(one), await acquire(two)];
    const order: string[] = [];
    const [third, fourth] = await Promise.all(
      ['third', 'fourth'].map(async (which, index) => {
        if (index > 0) await contest.untilQueued(LIMIT + index);
        const holding = acquire(others[index]).then((held) => {
          order.push(which);
          return { held, at: moment() };
        });
        await contest.untilQueued(LIMIT + index + 1);
        return { holding };
      }),
    );

    await begin(member);
    await cluster().leader();
    const elected = moment();
    expect(order).toEqual([]);
    const releases = [second.release()];
    const next = await third?.holding;
    recovered(context, { from: elected, to: next?.at ?? elected, limit: ELECTED });
    expect(order).toEqual(['third']);
    expect(first.signal.aborted).toBe(false);
    next?.held.assertHeld();
    const released = moment();
    releases.push(first.release());
    const last = await fourth?.holding;
    recovered(context, { from: released, to: last?.at ?? released, limit: ELECTED });
    expect(order).toEqual(['third', 'fourth']);
    next?.held.assertHeld();
    for (const { held } of [next, last].flatMap((one) => one ?? [])) releases.push(held.release());
    expect(await Promise.all(releases)).toEqual([true, true, true, true]);
    await Promise.all(clients.map((client) => client.close()));
    await contest.end();
  },
);
