import { expect, onTestFinished, test } from 'vitest';
import { EtcdClient } from '../../../src/client.ts';
import { LockManager } from '../../../src/manager/manager.ts';
import { type EtcdMember, startCluster } from '../../support/etcd.ts';
import { gate } from '../../support/gate.ts';
import { base64 } from '../../support/gateway.ts';
import { freshName, useProxy } from '../../support/locks.ts';
import { elapsed, type Moment, moment } from '../../support/stalls/stalls.mjs';
import { untilWatched } from '../../support/watched-keys.ts';

/** Seconds. */
const TTL = 12;
/** Milliseconds within which a waiter notices a silent member: a third of the TTL. */
const POLL_CAP = 4_000;

function useLocks(...endpoints: string[]): LockManager {
  const client = new EtcdClient({ api: 'v3', endpoints });
  onTestFinished(() => client.close({ timeout: 0 }).catch(() => {}));
  return new LockManager(client, { ttl: TTL });
}

/** Begins a watch that shows no event. The promise inside resolves when the member has ended it. */
async function beginWatch({ url }: EtcdMember): Promise<{ readonly end: Promise<Moment> }> {
  const body = JSON.stringify({ create_request: { key: base64(freshName()) } });
  const { body: stream } = await fetch(`${url}/v3/watch`, { method: 'POST', body });
  const reader = stream?.getReader();
  await reader?.read();
  const ends = async (): Promise<Moment> => {
    try {
      while (!(await reader?.read())?.done);
    } catch {
      // The connection was reset.
    }
    return moment();
  };
  return { end: ends() };
}

test('a waiter whose member shuts down gets a released lock by another member', async () => {
  const cluster = await startCluster();
  onTestFinished(() => cluster.stop());
  // A follower: on a busy machine, a leader could not hand over its leadership in time.
  const second = await cluster.leader();
  const first = cluster.members.find((member) => member !== second) as EtcdMember;
  const version = await first.version();
  const watch = await beginWatch(first);
  const proxy = await useProxy(first.url);
  // A busy machine must not make the waiter turn to the second member before the first one has its watch.
  const next = await useProxy(second.url);
  const { opened, open } = gate();
  const allow = next.intercept(() => ({ hold: opened }));
  const name = freshName();
  const held = await useLocks(second.url).acquire(name);
  const waiting = useLocks(proxy.url, next.url).acquire(name);
  await untilWatched(proxy, held.key);
  allow();
  open();

  const asked = moment();
  first.process.kill('SIGTERM');
  expect(await held.release()).toBe(true);
  const released = moment();
  const taken = await waiting;
  const acquired = moment();
  const ended = await watch.end;
  if (version.startsWith('3.4.')) {
    expect(elapsed(asked, ended)).toBeLessThan(1_000);
    expect(elapsed(released, acquired)).toBeLessThan(1_000);
  } else {
    // From etcd 3.5 on, a shutdown waits 7 s for open streams to end. Until then, such a member looks like a silent one.
    expect(ended.at - asked.at).toBeGreaterThan(6_000);
    expect(elapsed(released, acquired)).toBeLessThan(POLL_CAP);
  }
  expect(await taken.release()).toBe(true);
});
