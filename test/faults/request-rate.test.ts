import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, onTestFinished, test } from 'vitest';
import { EtcdWatchTimedOut, Lock, LockManager } from '../../src/index.ts';
import { freshName, rejection, useClient } from '../support/locks.ts';
import { elapsed, moment, now } from '../support/stalls/stalls.mjs';
import { outages } from './outages.ts';
import { useCluster } from './use-cluster.ts';

/** Seconds: a hold lasts for nine tenths of it after a write, so that holder and waiter ask until the end. */
const TTL = 15;
const LASTS = TTL * 900;
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

  test('a process that holds and waits sends five requests a second at most, and an acquire ends on time', async () => {
    const outage = await prepare(cluster());
    const proxies = cluster().members.map(({ proxy }) => proxy);
    const arrived = () => proxies.map(({ requests, accepted }) => Math.max(requests.length, accepted));
    const before = sum(arrived());
    const sent = noteRequests(cluster().urls);
    const client = useClient({ endpoints: cluster().urls });
    const name = freshName();
    const locks = new LockManager(client, { ttl: TTL });
    const written = now();
    const held = await locks.acquire(name);
    const giveUp = new AbortController();
    const waiting = rejection(new Lock(client, name).acquire({ lockTtl: TTL, keepAlive: true, signal: giveUp.signal }));
    await sleep(UNTIL_DUE);
    const began = now();
    await outage.begin();
    await sleep(OUTAGE);
    const ended = now();
    const { aborted } = held.signal;
    const during = sent.filter((at) => at >= began && at <= ended);
    expect(mostInASecond(during)).toBeLessThanOrEqual(MOST);
    expect(sum(arrived()) - before).toBeLessThanOrEqual(sent.length);
    // Otherwise they have given up.
    expect(during.length).toBeGreaterThan(OUTAGE / 1000);
    if (ended - written < LASTS) expect(aborted).toBe(false);
    const asked = moment();
    const inVain = rejection(new Lock(client, freshName()).acquire({ lockTtl: TTL, timeout: TIMEOUT }));
    expect(await inVain).toBeInstanceOf(EtcdWatchTimedOut);
    expect(elapsed(asked)).toBeLessThanOrEqual((TIMEOUT + LATE) * 1000);
    outage.end();
    giveUp.abort();
    await waiting;
    await held.release();
  });
});

/** Notes when clients of this process send a request to one of these, however late the machine delivers it. */
function noteRequests(urls: readonly string[]): readonly number[] {
  const times: number[] = [];
  const onRequest = (message: unknown): void => {
    const { origin } = (message as { readonly request: { readonly origin: string } }).request;
    if (urls.includes(origin)) times.push(now());
  };
  subscribe('undici:request:create', onRequest);
  onTestFinished(() => void unsubscribe('undici:request:create', onRequest));
  return times;
}

const sum = (numbers: readonly number[]): number => numbers.reduce((total, one) => total + one, 0);

/** In whatever second has the most of them. */
function mostInASecond(times: readonly number[]): number {
  const sorted = times.toSorted((a, b) => a - b);
  return Math.max(0, ...sorted.map((from) => sorted.filter((at) => at >= from && at < from + 1000).length));
}
