import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, test } from 'vitest';
import { EtcdLockLost, EtcdWatchTimedOut } from '../../src/index.ts';
import { aborted } from '../suites/lock/locks.ts';
import { rejection } from '../support/locks.ts';
import { elapsed, type Moment, moment, now } from '../support/stalls/stalls.mjs';
import { until } from '../support/until.ts';
import { Contest, isPoll, OURS, type Taken } from './contest.ts';
import type { FaultMember } from './fault-cluster.ts';
import { ELECTED, recovered } from './recovered.ts';
import { roles, servedBy, useCluster } from './use-cluster.ts';

/** Milliseconds: the fault, by its definition. */
const OUTAGE = 15_000;
/** Seconds, of what has to last longer than that. */
const LONG_TTL = 40;
/** Seconds: shorter than the outage. */
const TTL = 12;
/** Seconds, of an acquire in vain: and how late its end may come. On the way out there may be a second for its key. */
const TIMEOUT = 5;
const LATE = 1.5;

export interface Outage {
  /** Who fails: the leader is always among them. */
  readonly members: 2 | 3;
  begin(member: FaultMember): Promise<void>;
  end(member: FaultMember): Promise<void>;
}

/** What holds when so many members fail that the others cannot write, and come back after 15 s. */
export const noQuorum = (what: string, { members, begin, end }: Outage) =>
  describe(what, () => {
    const cluster = useCluster();

    async function begun() {
      const { leader, follower, other } = await roles(cluster());
      const failing = [leader, follower, other].slice(0, members);
      /** Resolves once there is a leader again, to when that was seen. */
      const outage = async (meanwhile: () => Promise<void> | void): Promise<Moment> => {
        const began = moment();
        await Promise.all(failing.map(begin));
        await meanwhile();
        await sleep(began.at + OUTAGE - now());
        await Promise.all(failing.map(end));
        await untilAgreed(other);
        return moment();
      };
      return { outage, byLeader: servedBy(leader, cluster()), byOther: servedBy(other, cluster()), other };
    }

    test.for(OURS)('whoever waited behind %s goes on after it, in the order they came', async (kind, context) => {
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

    test('a hold that outlasts it is kept, one that does not is told lost in time', async (context) => {
      const { outage, byLeader, byOther, other } = await begun();
      const [kept, gone] = [new Contest(cluster()), new Contest(cluster())];
      const held = await kept.take('LockManager.request', { by: byLeader, ttl: LONG_TTL });
      const doomed = await gone.take('LockManager.request', { by: byOther, ttl: TTL });
      const ended = aborted(doomed.signal).then(() => rejection(doomed.give()));
      const waiting = gone.take('Lock', { by: byOther, ttl: LONG_TTL });
      await gone.untilAsked([other], isPoll);
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

    test('who comes meanwhile gets the lock after it, by one key, or gives up on time, by none', async (context) => {
      const { outage, byOther } = await begun();
      const patient = OURS.map((kind) => ({ kind, contest: new Contest(cluster()) }));
      const impatient = new Contest(cluster());
      let takes: Promise<Taken>[] = [];
      const elected = await outage(async () => {
        takes = patient.map(({ kind, contest }) =>
          contest.take(kind, { by: byOther, ttl: LONG_TTL, timeout: LONG_TTL }),
        );
        const began = moment();
        const inVain = OURS.map((kind) =>
          rejection(impatient.take(kind, { by: byOther, ttl: LONG_TTL, timeout: TIMEOUT })),
        );
        for (const error of await Promise.all(inVain)) expect(error).toBeInstanceOf(EtcdWatchTimedOut);
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

/** Resolves once there is a leader, as the member that did not fail knows: a stopped one that goes on names its old one first. */
const untilAgreed = ({ etcd }: FaultMember): Promise<boolean> =>
  until(
    async () => {
      const signal = AbortSignal.timeout(500);
      const answer = await fetch(`${etcd.url}/v2/keys/?quorum=true`, { signal }).catch(() => undefined);
      await answer?.text();
      return answer?.ok === true;
    },
    (agreed) => agreed,
  );
