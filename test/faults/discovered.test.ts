import type { SrvRecord } from 'node:dns';
import { resolveSrv } from 'node:dns/promises';
import { afterEach, expect, test, vi } from 'vitest';
import { EtcdConnectionFailed, EtcdLockTimeout, Lock, LockManager } from '../../src/index.ts';
import { rejection } from '../support/locks.ts';
import { moment } from '../support/stalls/stalls.mjs';
import { until } from '../support/until.ts';
import { Contest, isPoll, openClient } from './contest.ts';
import { IMPOSTORS } from './impostors.ts';
import { recovered, SHOWN } from './recovered.ts';
import { roles, useCluster } from './use-cluster.ts';

vi.mock('node:dns/promises', async (original) => ({ ...(await original()), resolveSrv: vi.fn() }));

/** Seconds. */
const TTL = 15;
const DOMAIN = 'example.org';

const cluster = useCluster({ steady: true });

afterEach(() => {
  vi.mocked(resolveSrv).mockReset();
});

/** SRV records of these URLs, in order of preference. */
const records = (...urls: readonly string[]): SrvRecord[] =>
  urls.map((url, index) => {
    const { hostname: name, port } = new URL(url);
    return { name, port: Number(port), priority: index, weight: 1 };
  });

/** The servers of DNS know these records, by the name that python-etcd looks up. */
const publish = (...urls: readonly string[]) =>
  vi.mocked(resolveSrv).mockImplementation(async (name) => {
    if (name === `_etcd._tcp.${DOMAIN}`) return records(...urls);
    throw Object.assign(new Error('querySrv ENOTFOUND'), { code: 'ENOTFOUND' });
  });

const unknown = () => Object.assign(new Error('querySrv ESERVFAIL'), { code: 'ESERVFAIL' });
const dead = () =>
  Promise.all(['a host name that does not exist', 'a closed port'].map((what) => IMPOSTORS[what]?.() ?? ''));

test('a client uses the members from DNS that answer, and skips names that do not resolve and closed ports', async (context) => {
  const { follower, other } = await roles(cluster());
  publish(...(await dead()), follower.url, other.url);
  const contest = new Contest(cluster());
  const lock = new Lock(openClient({ srvDomain: DOMAIN }), contest.name);
  await lock.acquire({ lockTtl: TTL, timeout: 10 });
  const locks = new LockManager(openClient({ srvDomain: DOMAIN }), { ttl: TTL });
  const waiting = locks.acquire(contest.name);
  await contest.untilAsked([follower], isPoll);
  expect(await contest.queue()).toHaveLength(2);
  await lock.release();
  const released = moment();
  const held = await waiting;
  recovered(context, { from: released, to: moment(), limit: SHOWN });
  expect(await held.release()).toBe(true);
  await contest.end();
});

test('a call with a timeout acquires the lock once DNS answers', async (context) => {
  const { follower } = await roles(cluster());
  vi.mocked(resolveSrv).mockRejectedValue(unknown());
  const contest = new Contest(cluster());
  const lock = new Lock(openClient({ srvDomain: DOMAIN }), contest.name);
  const acquiring = lock.acquire({ lockTtl: TTL, timeout: 20 });
  await until(
    () => vi.mocked(resolveSrv).mock.calls.length,
    (count) => count > 3,
  );
  publish(follower.url);
  const answered = moment();
  expect(await acquiring).toBe(true);
  recovered(context, { from: answered, to: moment(), limit: SHOWN });
  await lock.release();
  await contest.end();
});

test('while DNS fails, a call ends by its timeout, or soon without one, and the error names the SRV record', async () => {
  vi.mocked(resolveSrv).mockRejectedValue(unknown());
  const [late, soon] = await Promise.all(
    [1, 0].map((timeout) => rejection(new Lock(openClient({ srvDomain: DOMAIN }), 'x').acquire({ timeout }))),
  );
  expect(late).toBeInstanceOf(EtcdLockTimeout);
  expect(soon).toBeInstanceOf(EtcdConnectionFailed);
  for (const error of [late, soon])
    expect(error).toHaveProperty('message', expect.stringContaining(`_etcd-client-ssl._tcp.${DOMAIN}`));
});

test('while DNS does not answer, a call ends by its timeout', async () => {
  vi.mocked(resolveSrv).mockReturnValue(new Promise(() => {}));
  const acquiring = new Lock(openClient({ srvDomain: DOMAIN }), 'x').acquire({ timeout: 1 });
  expect(await rejection(acquiring)).toBeInstanceOf(EtcdLockTimeout);
});
