import { expect, test } from 'vitest';
import { moment } from '../../support/stalls/stalls.mjs';
import { Contest, OURS } from '../contest.ts';
import { ELECTED, recovered } from '../recovered.ts';
import { SINGLE_FAULTS } from '../single-faults.ts';
import { roles, servedBy, useCluster } from '../use-cluster.ts';

/** Seconds: a hold outlasts an election on a busy machine. */
const TTL = 15;

const cluster = useCluster();

test.for(Object.entries(SINGLE_FAULTS))(
  '%s: a hold is kept, a released lock goes to its waiter, a free one is acquired, and no key or lease is left',
  async ([, { of, begin }], context) => {
    const { [of]: member } = await roles(cluster());
    const by = servedBy(member, cluster());
    const [kept, given, free] = [new Contest(cluster()), new Contest(cluster()), new Contest(cluster())];
    const [Kept, Waiting] = OURS;
    const held = await kept.take(Kept, { by, ttl: TTL });
    const holder = await given.take(Kept, { by, ttl: TTL });
    const waiting = given.take(Waiting, { by, ttl: TTL });
    await given.untilQueued(2);
    const terms = { by, ttl: TTL };
    const client = await free.ready(terms);

    await begin(member);
    await cluster().leader();
    const elected = moment();
    const taking = free.take(Waiting, { ...terms, client });
    const giving = holder.give();
    for (const next of await Promise.all([waiting, taking])) {
      recovered(context, { from: elected, to: next.at, limit: ELECTED });
      await next.give();
    }
    await giving;
    await kept.untilRenewed();
    expect(held.signal.aborted).toBe(false);
    await held.give();
    for (const contest of [kept, given, free]) await contest.end();
  },
);
