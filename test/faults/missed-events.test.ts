import { Pool } from 'undici';
import { describe, expect, test } from 'vitest';
import { gate } from '../support/gate.ts';
import { freshName, queueOn, useProxy } from '../support/locks.ts';
import type { ProxiedRequest } from '../support/proxy.ts';
import { moment } from '../support/stalls/stalls.mjs';
import { until } from '../support/until.ts';
import { failed } from '../support/v2-answers.ts';
import { Contest, OURS } from './contest.ts';
import type { FaultMember } from './fault-cluster.ts';
import { recovered, SHOWN, silent } from './recovered.ts';
import { roles, servedBy, useCluster } from './use-cluster.ts';

/** Seconds: the poll cap is 5 s. */
const TTL = 15;
/** Seconds, for waits whose poll must not reach its cap. */
const LONG_TTL = 60;
/** Number of events in etcd's history, which all keys share. */
const HISTORY = 1000;
/** Log entries that a leader keeps for members that lag behind; a member that lags further gets a snapshot. */
const LOG = 5000;
const SNAPSHOT_EVERY = 200;
/** etcd 3.4 never sends this answer itself, not even after a snapshot. */
const CLEARED = failed(400, 'watcher is cleared due to etcd recovery', '');
const isWait = ({ query }: ProxiedRequest): boolean => query.has('wait');

const cluster = useCluster({ steady: true, args: [`--snapshot-count=${SNAPSHOT_EVERY}`] });

describe('later events push the release out of the history of etcd', () => {
  test.for(OURS)(
    '%s, whose poll died silently, acquires the lock within a poll cap of the release',
    async (kind, context) => {
      const { leader, follower, other } = await roles(cluster());
      const contest = new Contest(cluster());
      const holder = await contest.take('python-etcd', { by: [other], ttl: 60 });
      const { taken: waiting } = await contest.wait(kind, { by: servedBy(follower, cluster()), ttl: TTL });
      follower.proxy.blackHole('both');
      await holder.give();
      const released = moment();
      await write(leader, HISTORY + 1);
      const next = await waiting;
      recovered(context, { from: released, to: next.at, limit: silent(TTL) });
      await next.give();
      await contest.end();
    },
  );

  test.for(OURS)(
    '%s, whose poll arrives later, acquires the lock as soon as the poll is answered with code 401',
    async (kind, context) => {
      const { leader, follower, other } = await roles(cluster());
      const contest = new Contest(cluster());
      const holder = await contest.take('python-etcd', { by: [other], ttl: 60 });
      const proxy = await useProxy(follower.url);
      const { opened, open } = gate();
      const allow = proxy.intercept((request) => (isWait(request) ? { hold: opened } : undefined));
      const polling = proxy.next(isWait, 'arrived');
      const waiting = contest.take(kind, { by: [{ ...follower, url: proxy.url }], ttl: LONG_TTL });
      const poll = await polling;
      await holder.give();
      await write(leader, HISTORY + 1);
      // A quorum read: after it the follower has all events, too.
      await queueOn(freshName(), follower.etcd.url);
      const answered = proxy.next((request) => request === poll, 'answered');
      allow();
      open();
      expect((await answered).status).toBe(400);
      const cleared = moment();
      const next = await waiting;
      recovered(context, { from: cleared, to: next.at, limit: SHOWN });
      await next.give();
      await contest.end();
    },
  );
});

test('waiters acquire the lock within a poll cap of the return of their member, which catches up by a snapshot without events', async (context) => {
  const { leader, follower, other } = await roles(cluster());
  const waits = await Promise.all(
    OURS.map(async (kind) => {
      const contest = new Contest(cluster());
      const holder = await contest.take('Lock', { by: [other], ttl: LONG_TTL });
      const { taken: waiting } = await contest.wait(kind, { by: servedBy(follower, cluster()), ttl: LONG_TTL });
      return { contest, holder, waiting };
    }),
  );
  const before = await snapshotsOf(follower);
  follower.isolate();
  await Promise.all(waits.map(({ holder }) => holder.give()));
  await write(leader, LOG + 2 * SNAPSHOT_EVERY);
  follower.rejoin();
  const rejoined = moment();
  await until(
    () => snapshotsOf(follower),
    (count) => count > before,
  );
  for (const { contest, waiting } of waits) {
    const next = await waiting;
    // Not from the release: if the writes took longer than the poll, the next question waits for a member without a leader.
    recovered(context, { from: rejoined, to: next.at, limit: silent(LONG_TTL) });
    await next.give();
    await contest.end();
  }
});

test.for(OURS)(
  '%s acquires the lock at once after its release although earlier polls were answered with code 400',
  async (kind, context) => {
    const { follower, other } = await roles(cluster());
    const contest = new Contest(cluster());
    const holder = await contest.take('python-etcd', { by: [other], ttl: 60 });
    const proxy = await useProxy(follower.url);
    const allow = proxy.intercept((request) =>
      isWait(request) ? { late: Promise.resolve(), status: 400, body: CLEARED } : undefined,
    );
    const waiting = contest.take(kind, { by: [{ ...follower, url: proxy.url }], ttl: LONG_TTL });
    await until(
      () => proxy.requests.filter(isWait).length,
      (polls) => polls >= 5,
    );
    await holder.give();
    const released = moment();
    allow();
    const next = await waiting;
    recovered(context, { from: released, to: next.at, limit: SHOWN });
    await next.give();
    await contest.end();
  },
);

/** Number of snapshots that the member has received. */
async function snapshotsOf({ etcd }: FaultMember): Promise<number> {
  const metrics = await (await fetch(`${etcd.url}/metrics`)).text();
  const counts = [...metrics.matchAll(/^etcd_network_snapshot_receive_success\{.*\} (\d+)$/gm)];
  return counts.reduce((sum, [, count]) => sum + Number(count), 0);
}

/** Writes to another key at least this many times. */
async function write({ etcd }: FaultMember, times: number): Promise<void> {
  // Not fetch, which needs three times as long for a request.
  const pool = new Pool(etcd.url, { connections: 64 });
  let left = times;
  const lane = async () => {
    while (left > 0) {
      left -= 1;
      const headers = { 'content-type': 'application/x-www-form-urlencoded' };
      const request = { path: '/v2/keys/elsewhere', method: 'PUT', headers, body: `value=${left}` } as const;
      const { statusCode, body } = await pool.request(request);
      await body.dump();
      // After a timeout of etcd the write may or may not have happened: it does not count.
      if (statusCode !== 200 && statusCode !== 201) left += 1;
    }
  };
  await Promise.all(Array.from({ length: 64 }, lane));
  await pool.close();
}
