import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { EtcdLockExpired, Lock } from '../../../../src/index.ts';
import { V2Client } from '../../../../src/v2/client.ts';
import { type EtcdCluster, type EtcdMember, startCluster } from '../../../support/etcd.ts';
import { freshName, nextWatch, queueOn } from '../../../support/locks.ts';
import { until } from '../../../support/until.ts';

const ROUNDS = 6;

describe('a waiter whose member is stopped for longer than its TTL', () => {
  let cluster: EtcdCluster;
  beforeAll(async () => {
    cluster = await startCluster(3);
  }, 60_000);
  afterAll(() => cluster.stop());

  async function roles(): Promise<{ follower: EtcdMember; others: string[] }> {
    const leader = await cluster.leader();
    const [follower] = cluster.members.filter((member) => member !== leader);
    if (!follower) throw new Error('no follower');
    return { follower, others: cluster.urls.filter((url) => url !== follower.url) };
  }

  test(`never reports the lock held in ${ROUNDS} rounds`, async () => {
    const { follower, others } = await roles();
    const elsewhere = new V2Client({ endpoints: others });
    const stopped = new V2Client({ endpoints: follower.url, readTimeout: 2 });
    let heldByWaiter = 0;
    for (let round = 0; round < ROUNDS; round += 1) {
      const name = freshName();
      const owner = new Lock(elsewhere, name);
      const other = new Lock(elsewhere, name);
      const waiter = new Lock(stopped, name);
      await owner.acquire({ lockTtl: 60 });
      // The waiter has its entry and has read the queue. Otherwise it could rightly append an entry later.
      const watching = nextWatch(stopped);
      const outcome = waiter.acquire({ lockTtl: 2, keepAlive: round % 2 === 0 }).catch((error: unknown) => error);
      await Promise.race([watching, outcome]);
      await follower.pause();
      await until(
        () => queueOn(name, others[0]),
        (queue) => queue.every(({ value }) => value !== waiter.uuid),
      );
      await owner.release();
      expect(await other.acquire({ timeout: 20 })).toBe(true);
      follower.resume();
      const result = await outcome;
      if (result === true) heldByWaiter += 1;
      else expect(result).toBeInstanceOf(EtcdLockExpired);
      expect(other.isTaken).toBe(true);
      await other.release();
    }
    expect(heldByWaiter).toBe(0);
    await stopped.close();
    await elsewhere.close();
  });

  test('gets the lock through another member if it knows one', { timeout: 60_000 }, async () => {
    const { follower, others } = await roles();
    const elsewhere = new V2Client({ endpoints: others });
    const client = new V2Client({ endpoints: [follower.url, ...others], randomizeEndpoints: false, readTimeout: 1 });
    const name = freshName();
    const owner = new Lock(elsewhere, name);
    await owner.acquire({ lockTtl: 60 });
    const waiter = new Lock(client, name);
    const waiting = waiter.acquire({ lockTtl: 6, keepAlive: true, timeout: 40 });
    await until(
      () => queueOn(name, others[0]),
      (queue) => queue.length === 2,
    );
    await follower.pause();
    await owner.release();
    expect(await waiting).toBe(true);
    await waiter.release();
    follower.resume();
    await client.close();
    await elsewhere.close();
  });
});
