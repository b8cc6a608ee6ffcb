import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, test } from 'vitest';
import { EtcdLockTimeout, Lock, LockManager } from '../../src/index.ts';
import { freshName, rejection } from '../support/locks.ts';
import { mostInASecond, recordOutages, recordRequests } from '../support/request-times.ts';
import { elapsed, moment, now } from '../support/stalls/stalls.mjs';
import { openClient } from './contest.ts';
import { outages } from './outages.ts';
import { useCluster } from './use-cluster.ts';

/** Seconds. A hold lasts for nine tenths of it after a write, so holder and waiter send requests until the fault ends. */
const TTL = 15;
const LASTS = TTL * 900;
/** Milliseconds from a write to the worst moment for a fault: right before the renewal that is due after TTL/3. */
const UNTIL_DUE = (TTL / 3) * 1000 - 100;
/** Milliseconds. */
const OUTAGE = 8000;
/** Requests in any second. */
const MOST = 5;
/** Milliseconds from one try to the next at most, if no member answers: a second for the answer, and the longest pause. */
const RETRY = 1500;
/** Calls under way when every member has failed, if the machine stood still until then: the waiter's poll, and two renewals. */
const CALLS = 3;
/** Seconds, for an acquire that fails. */
const TIMEOUT = 3;
/** Seconds by which that acquire may end late. */
const LATE = 0.8;

describe.for(Object.entries(outages))('while %s', ([, prepare]) => {
  const cluster = useCluster();

  test('a process that holds and waits sends at most five requests per second, and an acquire ends on time', async () => {
    const outage = await prepare(cluster());
    const proxies = cluster().members.map(({ proxy }) => proxy);
    const arrived = () => proxies.map(({ requests }) => requests.length);
    const before = sum(arrived());
    const sent = recordRequests(cluster().urls);
    const noticed = recordOutages();
    const client = openClient({ endpoints: cluster().urls });
    const name = freshName();
    const locks = new LockManager(client, { ttl: TTL });
    const written = now();
    const held = await locks.acquire(name);
    const giveUp = new AbortController();
    const waiting = rejection(new Lock(client, name).acquire({ lockTtl: TTL, keepAlive: true, signal: giveUp.signal }));
    await sleep(UNTIL_DUE);
    const begins = now();
    await outage.begin();
    // Not before: on a busy machine, requests may be sent and answered until the outage has begun.
    const began = now();
    await sleep(OUTAGE);
    const ended = now();
    const { aborted } = held.signal;
    const during = sent.filter((at) => at >= began && at <= ended);
    // If the machine stood still until the renewals were due, these fail together with the poll, before the outage is known and the
    // limit begins: each of these calls may have asked each member.
    const due = written + (TTL / 3) * 1000;
    const shown = noticed.find((at) => at >= begins) ?? Number.POSITIVE_INFINITY;
    const limited = outage.isShown && shown > due ? Math.max(began, shown) : began;
    expect(during.filter((at) => at < limited).length).toBeLessThanOrEqual(CALLS * proxies.length);
    expect(mostInASecond(during.filter((at) => at >= limited))).toBeLessThanOrEqual(MOST);
    expect(sum(arrived()) - before).toBeLessThanOrEqual(sent.length);
    // Fewer requests would mean that holder and waiter had stopped retrying. If the outage began only after the renewals, the next ones
    // are due later.
    expect(during.length).toBeGreaterThan(OUTAGE / (began < due ? RETRY : 2000));
    if (ended - written < LASTS) expect(aborted).toBe(false);
    const asked = moment();
    const failure = rejection(new Lock(client, freshName()).acquire({ lockTtl: TTL, timeout: TIMEOUT }));
    expect(await failure).toBeInstanceOf(EtcdLockTimeout);
    expect(elapsed(asked)).toBeLessThanOrEqual((TIMEOUT + LATE) * 1000);
    outage.end();
    giveUp.abort();
    await waiting;
    await held.release();
  });
});

const sum = (numbers: readonly number[]): number => numbers.reduce((total, one) => total + one, 0);
