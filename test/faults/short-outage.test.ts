import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, test } from 'vitest';
import { Contest, OURS } from './contest.ts';
import { outages } from './outages.ts';
import { useCluster } from './use-cluster.ts';

/** Seconds. */
const TTL = 30;
/** Milliseconds from a write to the worst moment for a fault: right before the renewal that is due after TTL/3. */
const UNTIL_DUE = 9900;
/** Milliseconds: an outage that a hold with this TTL is promised to survive. */
const OUTAGE = 10_000;

describe.for(Object.entries(outages))('%s for 10 s', ([, prepare]) => {
  const cluster = useCluster();

  test(`a hold with a TTL of ${TTL} s is not lost, even if its renewal was due`, async () => {
    const outage = await prepare(cluster());
    const holds = await Promise.all(
      OURS.map(async (kind) => {
        const contest = new Contest(cluster());
        return { contest, held: await contest.take(kind, { by: cluster().members, ttl: TTL }) };
      }),
    );
    await sleep(UNTIL_DUE);
    await outage.begin();
    await sleep(OUTAGE);
    outage.end();
    await Promise.all(holds.map(({ contest }) => contest.untilRenewed()));
    for (const { contest, held } of holds) {
      expect(held.signal.aborted).toBe(false);
      await held.give();
      await contest.end();
    }
  });
});
