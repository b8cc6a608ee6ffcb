import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, test } from 'vitest';
import { EtcdWatchTimedOut, Lock, LockManager } from '../../src/index.ts';
import { freshName, rejection, useClient } from '../support/locks.ts';
import { measureStalls } from '../support/stalls.mjs';
import { outages } from './outages.ts';
import { useCluster } from './use-cluster.ts';

/** Seconds: a hold lasts for nine tenths of it after a write, so that holder and waiter ask until the end. */
const TTL = 15;
/** Milliseconds from a write to the worst moment: right before the renewal that is due TTL/3 after it. */
const UNTIL_DUE = (TTL / 3) * 1000 - 100;
/** Milliseconds: the fault, by its definition. */
const OUTAGE = 8000;
/** In any second. */
const MOST = 5;
/** Seconds, of an acquire in vain. */
const TIMEOUT = 3;
/** Seconds that its end may be late by. */
const LATE = 0.5;

describe.for(Object.entries(outages))('while %s', ([, prepare]) => {
  const cluster = useCluster();

  test('a process that holds and waits sends five requests a second at the most, and an acquire ends on time', async () => {
    const outage = await prepare(cluster());
    const proxies = cluster().members.map(({ proxy }) => proxy);
    const client = useClient({ endpoints: cluster().urls });
    const name = freshName();
    const locks = new LockManager(client, { ttl: TTL });
    const held = await locks.acquire(name);
    const giveUp = new AbortController();
    const waiting = rejection(new Lock(client, name).acquire({ lockTtl: TTL, keepAlive: true, signal: giveUp.signal }));
    await sleep(UNTIL_DUE);
    const began = performance.now();
    await outage.begin();
    await sleep(OUTAGE);
    const ended = performance.now();
    const meanwhile = (at: number): boolean => at >= began && at <= ended;
    const requests = proxies.flatMap((proxy) => proxy.requests.map(({ at }) => at)).filter(meanwhile);
    const connections = proxies.flatMap((proxy) => proxy.acceptedAt).filter(meanwhile);
    // Where nothing is accepted, a request gets no further than its connection.
    const asked = requests.length > 0 ? requests : connections;
    expect(mostInASecond(asked)).toBeLessThanOrEqual(MOST);
    // Else they would have given up.
    expect(asked.length).toBeGreaterThan(OUTAGE / 1000);
    expect(held.signal.aborted).toBe(false);
    const [asking, stalled] = [performance.now(), measureStalls()];
    const tried = rejection(new Lock(client, freshName()).acquire({ lockTtl: TTL, timeout: TIMEOUT }));
    expect(await tried).toBeInstanceOf(EtcdWatchTimedOut);
    expect(performance.now() - asking - stalled()).toBeLessThanOrEqual((TIMEOUT + LATE) * 1000);
    outage.end();
    giveUp.abort();
    await waiting;
    await held.release();
  });
});

/** In whatever second has the most of them. */
function mostInASecond(times: readonly number[]): number {
  const sorted = times.toSorted((a, b) => a - b);
  return Math.max(0, ...sorted.map((from) => sorted.filter((at) => at >= from && at < from + 1000).length));
}
