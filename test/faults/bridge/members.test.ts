import { expect, test } from 'vitest';
import { moment } from '../../support/stalls/stalls.mjs';
import { Contest, isPoll } from '../contest.ts';
import type { FaultMember } from '../fault-cluster.ts';
import { ELECTED, recovered } from '../recovered.ts';
import { roles, servedBy, useCluster } from '../use-cluster.ts';
import { PATIENCE, useBridgedPython } from './python.ts';

/** Seconds. */
const TTL = 60;

interface Fault {
  /** The member that it is about, and which the bridge prefers. */
  readonly of: 'leader' | 'follower';
  begin(member: FaultMember): unknown;
  /** Seconds until the connections to the member have shown the fault. */
  readonly shownAfter: number;
}

/** A dead connection shows at the next poll of python-etcd, whose first read asks another member after a second. */
const SILENT = PATIENCE + 2;

const FAULTS: Readonly<Record<string, Fault>> = {
  'the leader is killed': { of: 'leader', begin: ({ etcd }) => etcd.kill(), shownAfter: 0 },
  'the leader is paused': { of: 'leader', begin: ({ etcd }) => etcd.pause(), shownAfter: SILENT },
  'the leader is isolated': { of: 'leader', begin: (member) => member.isolate(), shownAfter: SILENT },
  'a follower is killed': { of: 'follower', begin: ({ etcd }) => etcd.kill(), shownAfter: 0 },
  'a follower is paused': { of: 'follower', begin: ({ etcd }) => etcd.pause(), shownAfter: SILENT },
  'a follower is isolated': { of: 'follower', begin: (member) => member.isolate(), shownAfter: SILENT },
  'the requests to a member are lost': {
    of: 'follower',
    begin: ({ proxy }) => proxy.blackHole('requests'),
    shownAfter: SILENT,
  },
  'the answers of a member are lost': {
    of: 'follower',
    begin: ({ proxy }) => proxy.blackHole('answers'),
    shownAfter: SILENT,
  },
};

const cluster = useCluster();

test.for(Object.entries(FAULTS))(
  '%s: python-etcd keeps a hold, gets a released lock, acquires a free one, and no key or lease is left',
  async ([, { of, begin, shownAfter }], context) => {
    const { [of]: member, other } = await roles(cluster());
    const { takes, python } = await useBridgedPython(cluster(), [member, other]);
    const by = servedBy(other, cluster());
    const [kept, given, free] = [new Contest(cluster()), new Contest(cluster()), new Contest(cluster())];
    const keeping = await python.lock(kept.name);
    expect(await keeping.acquire({ lockTtl: TTL })).toBe(true);
    const holder = await given.take('LockManager.request', { by, ttl: TTL });
    const waiting = given.takeBy(takes(TTL));
    await given.untilQueued(2);
    // A slow machine may have made the bridge prefer another member.
    await given.untilAsked(cluster().members, isPoll);

    await begin(member);
    await cluster().leader();
    const elected = moment();
    const taking = free.takeBy(takes(TTL));
    const giving = holder.give();
    for (const next of await Promise.all([waiting, taking])) {
      recovered(context, { from: elected, to: next.at, limit: shownAfter + ELECTED });
      await next.give();
    }
    await giving;
    expect(await keeping.isAcquired()).toBe(true);
    expect(await keeping.acquire({ lockTtl: TTL })).toBe(true);
    await keeping.release();
    for (const contest of [kept, given, free]) await contest.end();
  },
);
