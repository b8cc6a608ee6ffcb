import { describe, expect, test } from 'vitest';
import { EtcdClusterIdChanged, EtcdLockLost, EtcdStaleToken, Fence } from '../../src/index.ts';
import { aborted } from '../suites/lock/locks.ts';
import { rejection } from '../support/locks.ts';
import { Contest, OURS } from './contest.ts';
import { STORE } from './stores/tested.ts';
import { roles, servedBy, useCluster } from './use-cluster.ts';

/** Seconds: much longer than another cluster takes to start, so that no lease expires before the change is noticed. */
const TTL = 30;

describe('the whole cluster is replaced by another', () => {
  const cluster = useCluster();
  const changed = expect.any(EtcdClusterIdChanged);

  test('Lock loses its hold with EtcdClusterIdChanged and works on the new cluster', async () => {
    const { leader } = await roles(cluster());
    const contest = new Contest(cluster());
    const held = await contest.take('Lock', { by: servedBy(leader, cluster()), ttl: TTL });
    await cluster().wipe();
    expect(await aborted(held.signal)).toEqual(changed);
    await held.give();
    await expectAcquirable(contest);
    await contest.end();
  });

  test('LockManager loses its hold with EtcdClusterIdChanged as the cause and works on the new cluster', async () => {
    const { leader } = await roles(cluster());
    const contest = new Contest(cluster());
    const held = await contest.take('LockManager.request', { by: servedBy(leader, cluster()), ttl: TTL });
    await cluster().wipe();
    const reason = await aborted(held.signal);
    expect(reason).toBeInstanceOf(EtcdLockLost);
    expect(reason).toHaveProperty('cause', changed);
    expect(await rejection(held.give())).toBe(reason);
    await expectAcquirable(contest);
    await contest.end();
  });

  test.for(OURS)('a wait of %s fails with EtcdClusterIdChanged and leaves no key on the new cluster', async (kind) => {
    const { leader, follower } = await roles(cluster());
    const contest = new Contest(cluster());
    const holder = await contest.take('Lock', { by: servedBy(leader, cluster()), ttl: TTL });
    const { taken: waiting } = await contest.wait(kind, { by: servedBy(follower, cluster()), ttl: TTL });
    await cluster().wipe();
    expect(await rejection(waiting)).toEqual(changed);
    expect(await contest.queue()).toEqual([]);
    await aborted(holder.signal);
    await holder.give();
    await expectAcquirable(contest);
    await contest.end();
  });

  test('a fence of the old cluster refuses tokens of the new cluster, and a new fence accepts them', async () => {
    const { leader } = await roles(cluster());
    const [before, after] = [new Contest(cluster()), new Contest(cluster())];
    // Raises the index of the old cluster above any index that the new one reaches here.
    for (let write = 0; write < 100; write += 1) await STORE.write(leader.etcd.url);
    const old = await before.take('Lock', { by: servedBy(leader, cluster()), ttl: TTL });
    const fence = new Fence();
    await fence.accept('resource', old.token);
    await cluster().wipe();
    const next = await after.take('Lock', { by: servedBy(leader, cluster()), ttl: TTL });
    expect(await rejection(fence.accept('resource', next.token))).toBeInstanceOf(EtcdStaleToken);
    await new Fence().accept('resource', next.token);
    await aborted(old.signal);
    await old.give();
    await next.give();
    await before.end();
    await after.end();
  });

  async function expectAcquirable(contest: Contest): Promise<void> {
    const { leader } = await roles(cluster());
    for (const kind of OURS) {
      const held = await contest.take(kind, { by: servedBy(leader, cluster()), ttl: TTL });
      expect(await contest.queue()).toMatchObject([{ key: held.key }]);
      await held.give();
    }
  }
});
