// A member that is being replaced: the new one is a learner first, and refuses each request for locks. The code of that refusal
// depends on the version.
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { EtcdClient, LockManager } from '../../src/index.ts';
import { useBridge, useKeys } from '../../test/server/bridge/use-bridge.ts';
import { runCli } from '../../test/support/cli.ts';
import { diagnose, ownTroubles } from '../../test/support/doctor.ts';
import {
  type EtcdCluster,
  type EtcdMember,
  RECONFIGURABLE,
  startCluster,
  startLearner,
  stopAll,
} from '../../test/support/etcd.ts';
import { freshName } from '../../test/support/locks.ts';
import { until } from '../../test/support/until.ts';
import { built } from './built.ts';

const TTL = 6;

describe.each(['3.4', '3.5', '3.6'] as const)('etcd %s, with a learner among the endpoints', (version) => {
  const program = version === '3.4' ? undefined : built(version);
  let cluster: EtcdCluster;
  let learner: EtcdMember;
  beforeAll(async () => {
    cluster = await startCluster(3, { program, args: RECONFIGURABLE });
    await cluster.leader();
    learner = await startLearner(cluster.members, program);
  });
  afterAll(() => stopAll([...cluster.members, learner]));

  /** The learner is the first or the second member that a call asks. */
  const learnerFirst = () => [learner.url, ...cluster.urls];
  const locksOn = (endpoints: string[]): { locks: LockManager; client: EtcdClient } => {
    const client = new EtcdClient({ api: 'v3', endpoints });
    onTestFinished(() => client.close());
    return { client, locks: new LockManager(client, { ttl: TTL, timeout: 60 }) };
  };

  test('requests, waits and close() work, and each client asks the learner', async () => {
    const name = freshName();
    const [one, other] = [locksOn(learnerFirst()), locksOn(learnerFirst())];
    const held = await one.locks.acquire(name);
    const waiting = other.locks.acquire(name);
    await until(
      async () => (await one.locks.query()).pending,
      (pending) => pending.length === 1,
    );
    expect(await held.release()).toBe(true);
    const next = await waiting;
    expect(next.fencingToken).toBeGreaterThan(held.fencingToken);
    expect(await next.release()).toBe(true);
    await Promise.all([one.client.close(), other.client.close()]);
  });

  test('a bridge serves, run runs, and doctor calls the learner by its name', async () => {
    const bridge = await useBridge({ endpoints: learnerFirst() });
    const key = `/_locks/${freshName()}`;
    const keys = useKeys(bridge);
    await keys.delete((await keys.createInOrder(key, 'value', { ttl: 60 })).node.key);
    const args = ['--api', 'v3', '--endpoints', learnerFirst().join(',')];
    expect(await runCli(['run', ...args, freshName(), '--', 'echo', 'done'])).toMatchObject({
      code: 0,
      stdout: 'done\n',
    });
    const diagnosis = await diagnose(learnerFirst(), ['--api', 'v3', '--ttl', '300']);
    expect(diagnosis.code).toBe(0);
    expect(ownTroubles(diagnosis)).toMatchObject([
      {
        level: 'warn',
        about: 'health',
        endpoint: learner.url,
        text: expect.stringMatching(/^the member is a learner/),
      },
    ]);
  });

  test('a hold survives the death of the leader', async () => {
    const leader = await cluster.leader();
    const others = cluster.urls.filter((url) => url !== leader.url);
    const { locks, client } = locksOn([leader.url, learner.url, ...others]);
    const held = await locks.acquire(freshName());
    await leader.kill();
    const left = held.expiresIn();
    const killedAt = performance.now();
    // Longer than a lease that is no longer renewed lasts.
    await until(
      () => held.signal.aborted || held.expiresIn() > left - (performance.now() - killedAt) / 1000 + 1,
      Boolean,
    );
    held.assertHeld();
    expect(await held.release()).toBe(true);
    await client.close();
  });
});
