import { describe, expect, test } from 'vitest';
import { gate } from '../support/gate.ts';
import { freshName, queueOn, raw, useProxy } from '../support/locks.ts';
import type { ProxiedRequest } from '../support/proxy.ts';
import { moment } from '../support/stalls/stalls.mjs';
import { until } from '../support/until.ts';
import { failed } from '../support/v2-answers.ts';
import { Contest, isPoll, OURS } from './contest.ts';
import type { FaultMember } from './fault-cluster.ts';
import { recovered, SHOWN, silent } from './recovered.ts';
import { roles, servedBy, useCluster } from './use-cluster.ts';

/** Seconds: the cap of a poll is 5. */
const TTL = 15;
/** Seconds, of waits whose poll is not to end by itself. */
const LONG_TTL = 60;
/** Events that etcd remembers, of the whole cluster. */
const HISTORY = 1000;
/** Entries that a leader keeps in its log for those who lag behind; beyond, they get a snapshot. */
const LOG = 5000;
const SNAPSHOT_EVERY = 200;
/** etcd 3.4 sends it to nobody: see the snapshot below. */
const CLEARED = failed(400, 'watcher is cleared due to etcd recovery', '');
const isWait = ({ query }: ProxiedRequest): boolean => query.has('wait');

const cluster = useCluster({ steady: true, args: [`--snapshot-count=${SNAPSHOT_EVERY}`] });

describe('more happens elsewhere than etcd remembers', () => {
  test.for(OURS)(
    'while the poll of %s dies silently: it goes on within a poll of the release',
    async (kind, context) => {
      const { leader, follower, other } = await roles(cluster());
      const contest = new Contest(cluster());
      const holder = await contest.take('python-etcd', { by: [other], ttl: 60 });
      const waiting = contest.take(kind, { by: servedBy(follower, cluster()), ttl: TTL });
      await contest.untilAsked([follower], isPoll);
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
    'before the poll of %s comes: it goes on as soon as that is answered with code 401',
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
      // By quorum: the follower has them all, too.
      await queueOn(freshName(), follower.etcd.url);
      const answered = proxy.next((request) => request === poll, 'answered');
      allow();
      open();
      expect((await answered).status).toBe(400);
      const told = moment();
      const next = await waiting;
      recovered(context, { from: told, to: next.at, limit: SHOWN });
      await next.give();
      await contest.end();
    },
  );
});

test('waits go on within a poll of the release where their member catches up by a snapshot, which tells of no events', async (context) => {
  const { leader, follower, other } = await roles(cluster());
  const waits = await Promise.all(
    OURS.map(async (kind) => {
      const contest = new Contest(cluster());
      const holder = await contest.take('Lock', { by: [other], ttl: LONG_TTL });
      const waiting = contest.take(kind, { by: servedBy(follower, cluster()), ttl: LONG_TTL });
      await contest.untilAsked([follower], isPoll);
      return { contest, holder, waiting };
    }),
  );
  const before = await snapshotsOf(follower);
  follower.isolate();
  await Promise.all(waits.map(({ holder }) => holder.give()));
  const released = moment();
  await write(leader, LOG + 2 * SNAPSHOT_EVERY);
  follower.rejoin();
  await until(
    () => snapshotsOf(follower),
    (count) => count > before,
  );
  for (const { contest, waiting } of waits) {
    const next = await waiting;
    recovered(context, { from: released, to: next.at, limit: silent(LONG_TTL) });
    await next.give();
    await contest.end();
  }
});

test.for(OURS)(
  '%s goes on at once where its poll is answered with code 400, again and again',
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

/** How many the member has been sent. */
async function snapshotsOf({ etcd }: FaultMember): Promise<number> {
  const metrics = await (await fetch(`${etcd.url}/metrics`)).text();
  const counts = [...metrics.matchAll(/^etcd_network_snapshot_receive_success\{.*\} (\d+)$/gm)];
  return counts.reduce((sum, [, count]) => sum + Number(count), 0);
}

/** Writes to another key so many times at least. */
async function write({ etcd }: FaultMember, times: number): Promise<void> {
  let left = times;
  const lane = async () => {
    while (left > 0) {
      left -= 1;
      const { status } = await raw('PUT', '/elsewhere', { value: String(left) }, etcd.url);
      // Where etcd takes too long, it may have done it or not.
      if (status !== 200 && status !== 201) left += 1;
    }
  };
  await Promise.all(Array.from({ length: 64 }, lane));
}
