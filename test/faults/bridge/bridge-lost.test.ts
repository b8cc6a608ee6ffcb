import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, test } from 'vitest';
import { EtcdClient, LockManager } from '../../../src/index.ts';
import type { BridgeProcess } from '../../support/bridge-process.ts';
import { freshName, rejection } from '../../support/locks.ts';
import { moment } from '../../support/stalls/stalls.mjs';
import { until } from '../../support/until.ts';
import { Contest, isAppend, isPoll } from '../contest.ts';
import { recovered, SHOWN } from '../recovered.ts';
import { roles, servedBy, useCluster } from '../use-cluster.ts';
import { GIVES_UP, taken, useBridgedPython } from './python.ts';

/** Seconds. */
const TTL = 25;

const cluster = useCluster({ steady: true });

/** How a bridge fails, and the seconds within which python-etcd continues at another one. */
const FAULTS: readonly (readonly [string, (bridge: BridgeProcess) => void, number])[] = [
  ['killed', (bridge) => bridge.kill(), 2 * SHOWN],
  ['stopped', (bridge) => bridge.stop(), GIVES_UP + 2 * SHOWN],
];

async function setUp() {
  const { follower, other } = await roles(cluster());
  const contest = new Contest(cluster());
  return { contest, follower, other, ...(await useBridgedPython(cluster(), [follower, other])) };
}

describe.for(FAULTS)('a bridge of python-etcd is %s', ([, fail, limit]) => {
  test('a waiter keeps its position, and acquires the lock at another bridge', async (context) => {
    const { contest, other, first, takes } = await setUp();
    const by = servedBy(other, cluster());
    const holder = await contest.take('LockManager.request', { by, ttl: TTL });
    const waiting = contest.takeBy(takes(TTL));
    const [, entry] = await contest.untilQueued(2);
    const last = contest.take('Lock', { by, ttl: TTL });
    await contest.untilQueued(3);
    await contest.untilAsked(cluster().members, isPoll);
    fail(first);
    await holder.give();
    const released = moment();
    const next = await waiting;
    recovered(context, { from: released, to: next.at, limit });
    expect(await contest.queue()).toMatchObject([{ key: entry?.key }, {}]);
    await next.give();
    await (await last).give();
    await contest.end();
  });

  test('a lock that python-etcd releases afterwards goes to the next waiter', async (context) => {
    const { contest, other, first, takes } = await setUp();
    const holder = await contest.takeBy(takes(TTL));
    const waiting = contest.take('LockManager.request', { by: servedBy(other, cluster()), ttl: TTL });
    await contest.untilQueued(2);
    fail(first);
    const asked = moment();
    await holder.give();
    const next = await waiting;
    recovered(context, { from: asked, to: next.at, limit });
    await next.give();
    await contest.end();
  });

  test('an append that etcd has carried out, but whose answer is lost, makes one entry', async (context) => {
    const { contest, follower, first, takes } = await setUp();
    const answered = follower.proxy.swallow(isAppend);
    const taking = contest.takeBy(takes(TTL));
    await answered;
    fail(first);
    const failed = moment();
    const held = await taking;
    recovered(context, { from: failed, to: held.at, limit });
    expect(await contest.queue()).toHaveLength(1);
    await held.give();
    await contest.end();
  });

  test('an append whose request to etcd is lost makes one entry', async (context) => {
    const { contest, first, python } = await setUp();
    const lock = await python.lock(contest.name);
    const proxies = cluster().members.map(({ proxy }) => proxy);
    const asked = () => proxies.flatMap(({ requests }) => requests).filter(({ path }) => path.endsWith('/lease/grant'));
    const before = asked().length;
    const taking = contest.takeBy(() => taken(lock, TTL));
    await until(
      () => asked().length,
      (count) => count > before,
      { every: 1 },
    );
    for (const proxy of proxies) proxy.blackHole('requests');
    fail(first);
    for (const proxy of proxies) proxy.heal();
    const failed = moment();
    const held = await taking;
    recovered(context, { from: failed, to: held.at, limit });
    expect(await contest.queue()).toHaveLength(1);
    await held.give();
    await contest.end();
  });
});

test('a bridge that was stopped does not append for a client that has hung up since', async () => {
  const { contest, first } = await setUp();
  first.stop();
  const hangUp = new AbortController();
  const asking = rejection(
    fetch(`${first.url}/v2/keys/_locks/${contest.name}`, {
      method: 'POST',
      body: new URLSearchParams({ value: 'of a client that hangs up', ttl: `${TTL}` }),
      signal: hangUp.signal,
    }),
  );
  // The system accepts the connection, although the bridge is stopped.
  await sleep(500);
  hangUp.abort();
  await asking;
  first.goOn();
  // The append arrived before these requests.
  await useAnotherLock(first.url);
  await contest.end();
});

/** Appends and removes an entry of another lock. */
async function useAnotherLock(url: string): Promise<void> {
  const client = new EtcdClient({ api: 'v2', endpoints: url });
  await new LockManager(client).request(freshName(), () => {});
  await client.close();
}
