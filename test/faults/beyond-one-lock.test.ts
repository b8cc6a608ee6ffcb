import { expect, test } from 'vitest';
import { LockManager, type Term } from '../../src/index.ts';
import { moment } from '../support/stalls/stalls.mjs';
import { until } from '../support/until.ts';
import { Contest, openClient } from './contest.ts';
import { ELECTED, recovered } from './recovered.ts';
import { SINGLE_FAULTS, type SingleFault } from './single-faults.ts';
import { roles, servedBy, useCluster } from './use-cluster.ts';

/** Seconds: a hold outlasts an election on a busy machine. */
const TTL = 15;

const cluster = useCluster();

/** Managers with a client each, which ask the member first that the fault is about. */
async function start({ of, begin }: SingleFault, count: number) {
  const { [of]: member } = await roles(cluster());
  const endpoints = servedBy(member, cluster()).map(({ url }) => url);
  const clients = Array.from({ length: count }, () => openClient({ endpoints }));
  return {
    managers: clients.map((client) => new LockManager(client, { ttl: TTL })),
    /** Begins the fault. Resolves when the cluster has a leader again. */
    async fail(): Promise<void> {
      await begin(member);
      await cluster().leader();
    },
    close: () => Promise.all(clients.map((client) => client.close())),
  };
}

/**
 * Resolves to the result, and when it came. The limits count from the removal of an entry: through a silent member, the removal itself
 * takes half a second.
 */
const timed = async <T>(promise: Promise<T>) => ({ got: await promise, at: moment() });

test.for(Object.entries(SINGLE_FAULTS))(
  '%s: the holders of a semaphore are kept, and each release lets the next waiter in, in order',
  async ([, fault], context) => {
    const contest = new Contest(cluster());
    const { managers, fail, close } = await start(fault, 4);
    const acquire = (which: number) =>
      managers[which]?.acquire(contest.name, { limit: 2 }) ?? expect.unreachable('there is such a manager');
    const [first, second] = [await acquire(0), await acquire(1)];
    const order: string[] = [];
    const waiters = [];
    for (const which of [2, 3]) {
      const waiting = timed(acquire(which));
      waiters.push(waiting);
      void waiting.then(() => order.push(`waiter ${which}`));
      await contest.untilQueued(which + 1);
    }

    await fail();
    expect(order).toEqual([]);
    const released = timed(second.release());
    const next = (await waiters[0]) ?? expect.unreachable();
    recovered(context, { from: (await released).at, to: next.at, limit: ELECTED });
    expect(order).toEqual(['waiter 2']);
    expect(first.signal.aborted).toBe(false);
    const releasedNext = timed(first.release());
    const last = (await waiters[1]) ?? expect.unreachable();
    recovered(context, { from: (await releasedNext).at, to: last.at, limit: ELECTED });
    next.got.assertHeld();
    const releases = [next, last].map(({ got }) => got.release());
    expect([(await released).got, (await releasedNext).got, ...(await Promise.all(releases))]).toEqual(
      Array(4).fill(true),
    );
    await close();
    await contest.end();
  },
);

test.for(Object.entries(SINGLE_FAULTS))(
  '%s: several locks are kept together, and go to a request that names them in another order',
  async ([, fault], context) => {
    const [one, two] = [new Contest(cluster()), new Contest(cluster())];
    const { managers, fail, close } = await start(fault, 2);
    const held = (await managers[0]?.acquire([one.name, two.name])) ?? expect.unreachable();
    const waiting = timed(managers[1]?.acquire([two.name, one.name]) ?? expect.unreachable());
    const [first] = [one, two].toSorted((a, b) => (a.name < b.name ? -1 : 1));
    await first?.untilQueued(2);

    await fail();
    held.assertHeld();
    const released = timed(held.release());
    const next = await waiting;
    recovered(context, { from: (await released).at, to: next.at, limit: ELECTED });
    for (const { name } of [one, two])
      expect(next.got.get(name).fencingToken).toBeGreaterThan(held.get(name).fencingToken);
    expect([(await released).got, await next.got.release()]).toEqual([true, true]);
    await close();
    for (const contest of [one, two]) await contest.end();
  },
);

test.for(Object.entries(SINGLE_FAULTS))(
  '%s: a leader leads on, and when it resigns, the next candidate leads, as observers see',
  async ([, fault], context) => {
    const contest = new Contest(cluster());
    const { managers, fail, close } = await start(fault, 3);
    const [a, b, observer] = managers;
    const campaigns = [a, b].map((locks, index) =>
      locks?.elect(contest.name, { value: `candidate ${index}` }).campaign(),
    );
    const termOf = async (which: number): Promise<Term> =>
      (await campaigns[which]?.next())?.value ?? expect.unreachable('the campaign continues');
    const first = await termOf(0);
    const next = timed(termOf(1));
    await contest.untilQueued(2);
    const seen: (string | undefined)[] = [];
    const observing = (async () => {
      const leaders = observer?.elect(contest.name).observe() ?? [];
      for await (const leader of leaders) {
        seen.push(leader?.value);
        if (leader?.value === 'candidate 1') break;
      }
    })();
    await until(
      () => seen,
      (values) => values.includes('candidate 0'),
    );

    await fail();
    first.assertHeld();
    const resigned = timed(first.resign());
    const { got: second, at } = await next;
    recovered(context, { from: (await resigned).at, to: at, limit: ELECTED });
    expect(second.fencingToken).toBeGreaterThan(first.fencingToken);
    expect((await resigned).got).toBe(true);
    await observing;
    expect(seen.filter((value) => value !== undefined)).toEqual(['candidate 0', 'candidate 1']);
    for (const campaign of campaigns) await campaign?.return();
    await close();
    await contest.end();
  },
);
