import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, test } from 'vitest';
import { EtcdLockLost, EtcdLockTimeout } from '../../src/index.ts';
import { aborted } from '../suites/lock/locks.ts';
import { rejection } from '../support/locks.ts';
import { elapsed, type Moment, moment, now } from '../support/stalls/stalls.mjs';
import { until } from '../support/until.ts';
import { Contest, isPoll, OURS, type Taken } from './contest.ts';
import type { FaultMember } from './fault-cluster.ts';
import { ELECTED, recovered } from './recovered.ts';
import { STORE } from './stores/tested.ts';
import { roles, servedBy, useCluster } from './use-cluster.ts';

/** Milliseconds. */
const OUTAGE = 15_000;
/** Seconds, for what must outlast the outage. */
const LONG_TTL = 40;
/** Seconds: shorter than the outage. */
const TTL = 12;
/** Seconds: the timeout of an acquire that fails, and how late it may end. The removal of its key may take a second. */
const TIMEOUT = 5;
const LATE = 1.5;

export interface Outage {
  /** How many members fail: the leader is always one of them. */
  readonly members: 2 | 3;
  begin(member: FaultMember): Promise<void>;
  end(member: FaultMember): Promise<void>;
}

/** Tests of a cluster of which so many members fail that it cannot write, and come back after 15 s. */
export const noQuorum = (what: string, { members, begin, end }: Outage) =>
  describe(what, () => {
    const cluster = useCluster();

    async function begun() {
      const { leader, follower, other } = await roles(cluster());
      const failing = [leader, follower, other].slice(0, members);
      /** Runs the outage; resolves once there is a leader again, to the moment at which that was seen. */
      const outage = async (during: () => Promise<void> | void): Promise<Moment> => {
        const began = moment();
        await Promise.all(failing.map(begin));
        await during();
        await sleep(began.at + OUTAGE - now());
        await Promise.all(failing.map(end));
        await untilAgreed(other);
        return moment();
      };
      return { outage, byLeader: servedBy(leader, cluster()), byOther: servedBy(other, cluster()) };
    }

    test.for(OURS)('waiters behind %s acquire the lock after the outage, in queue order', async (kind, context) => {
      const { outage, byLeader, byOther } = await begun();
      const contest = new Contest(cluster());
      const holder = await contest.take(kind, { by: byLeader, ttl: LONG_TTL });
      const first = contest.take('Lock', { by: byOther, ttl: LONG_TTL });
      await contest.untilQueued(2);
      const second = contest.take('LockManager.request', { by: byLeader, ttl: LONG_TTL });
      await contest.untilQueued(3);
      await contest.untilAsked(byLeader, isPoll, 2);
      let releasing: Promise<void> | undefined;
      const elected = await outage(() => {
        releasing = holder.give();
      });
      const next = await first;
      recovered(context, { from: elected, to: next.at, limit: ELECTED });
      await next.give();
      await (await second).give();
      await releasing;
      await contest.end();
    });

    test('a hold whose TTL exceeds the outage is kept; the holder of a shorter one is notified in time', async (context) => {
      const { outage, byLeader, byOther } = await begun();
      const [kept, gone] = [new Contest(cluster()), new Contest(cluster())];
      const held = await kept.take('LockManager.request', { by: byLeader, ttl: LONG_TTL });
      const doomed = await gone.take('LockManager.request', { by: byOther, ttl: TTL });
      const ended = aborted(doomed.signal).then(() => rejection(doomed.give()));
      const { taken: waiting } = await gone.wait('Lock', { by: byOther, ttl: LONG_TTL });
      const elected = await outage(async () => {
        expect(await ended).toBeInstanceOf(EtcdLockLost);
      });
      const next = await waiting;
      recovered(context, { from: elected, to: next.at, limit: ELECTED });
      await kept.untilRenewed();
      expect(held.signal.aborted).toBe(false);
      await next.give();
      await held.give();
      await kept.end();
      await gone.end();
    });

    test('a call during the outage acquires the lock later with one key, or ends by its timeout with none', async (context) => {
      const { outage, byOther } = await begun();
      const patient = OURS.map((kind) => ({ kind, contest: new Contest(cluster()) }));
      const impatient = new Contest(cluster());
      let takes: Promise<Taken>[] = [];
      const elected = await outage(async () => {
        takes = patient.map(({ kind, contest }) =>
          contest.take(kind, { by: byOther, ttl: LONG_TTL, timeout: LONG_TTL }),
        );
        const began = moment();
        const failures = OURS.map((kind) =>
          rejection(impatient.take(kind, { by: byOther, ttl: LONG_TTL, timeout: TIMEOUT })),
        );
        for (const error of await Promise.all(failures)) expect(error).toBeInstanceOf(EtcdLockTimeout);
        expect(elapsed(began) / 1000).toBeLessThan(TIMEOUT + LATE);
      });
      for (const [index, { contest }] of patient.entries()) {
        const held = (await takes[index]) as Taken;
        recovered(context, { from: elected, to: held.at, limit: ELECTED });
        expect(await contest.queue()).toMatchObject([{ key: held.key }]);
        await held.give();
        await contest.end();
      }
      await impatient.end();
    });
  });

/** Resolves once this member reads by quorum, so that there is a leader: a resumed member may still name the old leader. */
const untilAgreed = ({ etcd }: FaultMember): Promise<boolean> =>
  until(
    () => STORE.readByQuorum(etcd.url, AbortSignal.timeout(500)),
    (agreed) => agreed,
  );
