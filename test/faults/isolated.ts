import { describe, expect, test } from 'vitest';
import { EtcdLockExpired, EtcdLockLost } from '../../src/index.ts';
import { rejection } from '../support/locks.ts';
import { moment } from '../support/stalls/stalls.mjs';
import { Contest, isAppend, isPoll, isRemoval, OURS } from './contest.ts';
import type { FaultMember } from './fault-cluster.ts';
import { died, ELECTED, recovered, SHOWN, silent } from './recovered.ts';
import { STORE } from './stores/tested.ts';
import { roles, servedBy, useCluster } from './use-cluster.ts';

/** Seconds: holds and waits outlast the fault, and an election on a busy machine. The poll cap is a third of it. */
const TTL = 15;
/** Seconds, for holds that are to be lost. */
const SHORT_TTL = 6;
/** Seconds, for entries that are to be lost, but not a second time. */
const LOST_TTL = 9;

/** Tests of a member that clients reach, but that is isolated from the other members. */
export const isolated = (role: 'leader' | 'follower') =>
  describe(`the ${role} that serves a client is isolated from the other members`, () => {
    const cluster = useCluster();

    /** Isolates the member; resolves when the others have a leader. */
    async function isolate(member: FaultMember): Promise<void> {
      member.isolate();
      await cluster().leader();
    }

    test.for(OURS)('a lock released through another member goes to %s within a poll cap', async (kind, context) => {
      const { [role]: member, other } = await roles(cluster());
      const contest = new Contest(cluster());
      const holder = await contest.take('LockManager.request', { by: servedBy(other, cluster()), ttl: TTL });
      const { taken: waiting } = await contest.wait(kind, { by: servedBy(member, cluster()), ttl: TTL });
      await isolate(member);
      await holder.give();
      const released = moment();
      const next = await waiting;
      recovered(context, { from: released, to: next.at, limit: silent(TTL) });
      member.rejoin();
      await next.give();
      await contest.end();
    });

    test.for(OURS)(
      'a lock that %s releases through the isolated member goes to the next waiter',
      async (kind, context) => {
        const { [role]: member, other } = await roles(cluster());
        const contest = new Contest(cluster());
        const holder = await contest.take(kind, { by: servedBy(member, cluster()), ttl: TTL });
        const { taken: waiting } = await contest.wait('Lock', { by: servedBy(other, cluster()), ttl: TTL });
        // Begun at once: later, the client may have learned from its watch that the member has no leader.
        const isolating = isolate(member);
        const releasing = holder.give();
        await Promise.all([isolating, contest.untilAsked([member], isRemoval)]);
        const elected = moment();
        const next = await waiting;
        recovered(context, { from: elected, to: next.at, limit: role === 'leader' ? ELECTED : SHOWN });
        await releasing;
        member.rejoin();
        await member.etcd.ready();
        await next.give();
        await contest.end();
      },
    );

    test('a holder keeps its hold if it knows another member; otherwise it is notified of the loss in time', async (context) => {
      const { [role]: member, other } = await roles(cluster());
      const [kept, gone] = [new Contest(cluster()), new Contest(cluster())];
      const held = await kept.take('LockManager.request', { by: servedBy(member, cluster()), ttl: TTL });
      const doomed = await gone.take('LockManager.request', { by: [member], ttl: SHORT_TTL });
      const { taken: waiting } = await gone.wait('Lock', { by: servedBy(other, cluster()), ttl: TTL });
      const cutOff = moment();
      await isolate(member);
      const elected = moment();
      const next = await waiting;
      expect(doomed.signal.reason).toBeInstanceOf(EtcdLockLost);
      const from = role === 'leader' && STORE.electionsRenew ? elected : cutOff;
      recovered(context, { from, to: next.at, limit: died(SHORT_TTL) });
      await kept.untilRenewed();
      expect(held.signal.aborted).toBe(false);
      member.rejoin();
      expect(await rejection(doomed.give())).toBe(doomed.signal.reason);
      await held.give();
      await next.give();
      await kept.end();
      await gone.end();
    });

    test.for(OURS)(
      '%s makes one entry although it sends the append to the isolated member first',
      async (kind, context) => {
        const { [role]: member } = await roles(cluster());
        const contest = new Contest(cluster());
        const terms = { by: servedBy(member, cluster()), ttl: TTL };
        const client = await contest.ready(terms);
        await isolate(member);
        const elected = moment();
        const taking = contest.take(kind, { ...terms, client, timeout: 15 });
        await contest.untilAsked([member], isAppend);
        const held = await taking;
        recovered(context, { from: elected, to: held.at, limit: ELECTED });
        member.rejoin();
        // The member may now carry out the append that it received while it was isolated.
        await member.etcd.ready();
        await held.give();
        await contest.end();
      },
    );

    test.for(OURS)(
      '%s, which knows no other member, loses its entry and does not hold by a stale answer',
      async (kind) => {
        const { [role]: member, other } = await roles(cluster());
        const contest = new Contest(cluster());
        const holder = await contest.take('Lock', { by: servedBy(other, cluster()), ttl: TTL });
        const waiting = contest.take(kind, { by: [member], ttl: LOST_TTL });
        await contest.untilAsked([member], isPoll);
        await isolate(member);
        await contest.untilQueued(1);
        await holder.give();
        const next = await contest.take('Lock', { by: servedBy(other, cluster()), ttl: TTL });
        if (kind === 'Lock') expect(await rejection(waiting)).toBeInstanceOf(EtcdLockExpired);
        member.rejoin();
        await member.etcd.ready();
        await contest.handOnAfterLoss(kind, waiting, next);
        await contest.end();
      },
    );
  });
