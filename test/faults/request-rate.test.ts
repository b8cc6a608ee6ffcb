import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, test } from 'vitest';
import { EtcdWatchTimedOut, Lock, LockManager } from '../../src/index.ts';
import { freshName, rejection } from '../support/locks.ts';
import { mostInASecond, recordRequests } from '../support/request-times.ts';
import { elapsed, moment, now } from '../support/stalls/stalls.mjs';
import { openClient } from './contest.ts';
import { outages } from './outages.ts';
import { useCluster } from './use-cluster.ts';

/** Seconds. A hold lasts for nine tenths of it after a write, so holder and waiter send requests until the fault ends. */
const TTL = 15;
const LASTS = TTL * 900;
/**
 * Milliseconds from a write to the start of the fault: a second before the renewal that is due after TTL/3. Until then the client knows
 * of the fault, by its poll, even if the machine stands still for a while. Else the poll and both renewals would fail at once, each
 * after a request, and the limit begins when every member has failed.
 */
const UNTIL_FAULT = (TTL / 3) * 1000 - 1000;
/** Milliseconds. The hold nearly ends in that time. */
const OUTAGE = 8900;
/** Requests in any second. */
const MOST = 5;
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
    const client = openClient({ endpoints: cluster().urls });
    const name = freshName();
    const locks = new LockManager(client, { ttl: TTL });
    const written = now();
    const held = await locks.acquire(name);
    const giveUp = new AbortController();
    const waiting = rejection(new Lock(client, name).acquire({ lockTtl: TTL, keepAlive: true, signal: giveUp.signal }));
    await sleep(UNTIL_FAULT);
    await outage.begin();
    // Not before: on a busy machine, requests may be sent and answered until the outage has begun.
    const began = now();
    await sleep(OUTAGE);
    const ended = now();
    const { aborted } = held.signal;
    const during = sent.filter((at) => at >= began && at <= ended);
    expect(mostInASecond(during)).toBeLessThanOrEqual(MOST);
    expect(sum(arrived()) - before).toBeLessThanOrEqual(sent.length);
    // Fewer requests would mean that holder and waiter had stopped retrying.
    expect(during.length).toBeGreaterThan(OUTAGE / 1000);
    if (ended - written < LASTS) expect(aborted).toBe(false);
    const asked = moment();
    const failure = rejection(new Lock(client, freshName()).acquire({ lockTtl: TTL, timeout: TIMEOUT }));
    expect(await failure).toBeInstanceOf(EtcdWatchTimedOut);
    expect(elapsed(asked)).toBeLessThanOrEqual((TIMEOUT + LATE) * 1000);
    outage.end();
    giveUp.abort();
    await waiting;
    await held.release();
  });
});

const sum = (numbers: readonly number[]): number => numbers.reduce((total, one) => total + one, 0);
