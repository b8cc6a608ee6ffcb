import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, onTestFinished, test } from 'vitest';
import { PythonError, type PythonLock, startPython } from '../../compat/python.ts';
import { Lock, LockManager } from '../../src/index.ts';
import { lockByEtcdctl } from '../support/etcdctl.mjs';
import { freshName } from '../support/locks.ts';
import { SharedResource } from '../support/shared-resource.ts';
import { until } from '../support/until.ts';
import { openClient, release } from './contest.ts';
import type { FaultMember } from './fault-cluster.ts';
import { STORE } from './stores/tested.ts';
import { servedBy, useCluster } from './use-cluster.ts';

/** Seconds. */
const TTL = 15;
/** Seconds. python-etcd may leave a key when its request is cut off; that key blocks everyone for this long. */
const PYTHON_TTL = 6;
/** Seconds: longer than any member is away, because Go's Mutex takes the lock even if its lease has expired. */
const ETCDCTL_TTL = 15;
/** Seconds of the TTL that must be left when a python-etcd holder, which does not renew, starts its work. */
const LEFT = 2;
/** The error of python-etcd when there is nothing to release. */
const NO_KEY = 'ValueError';
/** Milliseconds between reading and writing: an update by another contender in between would be lost. */
const WORK = 10;

/** Acquires the lock, does the work and releases it; resolves to whether the work was done. */
type Turn = (work: () => Promise<void>) => Promise<boolean>;

const ways = {
  'each with a clean shutdown': ({ etcd }: FaultMember) => etcd.restart(),
  async 'each after a kill'({ etcd }: FaultMember) {
    await etcd.kill();
    await etcd.restart();
  },
};

describe.for(Object.entries(ways))('all members are restarted one after the other, %s', ([, restart]) => {
  const cluster = useCluster();

  test('contenders of every kind keep acquiring the lock, without an overlap or a lost update', {
    timeout: 300_000,
  }, async () => {
    const name = freshName();
    const [first, second, third] = cluster().members as [FaultMember, FaultMember, FaultMember];
    const contenders = await Promise.all([
      byLock(name, first),
      byLock(name, second),
      byManager(name, second),
      byManager(name, third),
      byForeign(name, first),
      byForeign(name, third),
    ]);
    const resource = new SharedResource();
    let count = 0;
    const addOne = () =>
      resource.use('exclusive', async () => {
        const seen = count;
        await sleep(WORK);
        count = seen + 1;
      });
    let over = false;
    const turns = contenders.map(() => 0);
    const running = contenders.map(async (turn, index) => {
      while (!over) if (await turn(addOne)) turns[index] = (turns[index] ?? 0) + 1;
    });
    const everyoneTakesTurn = async (): Promise<void> => {
      const before = [...turns];
      const allMoved = until(
        () => turns.filter((taken, index) => taken > (before[index] ?? 0)).length,
        (moved) => moved === turns.length,
      );
      // A contender that fails ends the test at once.
      await Promise.race([allMoved, Promise.all(running)]);
    };
    await everyoneTakesTurn();
    for (const member of cluster().members) {
      await restart(member);
      await everyoneTakesTurn();
    }
    over = true;
    await Promise.all(running);
    expect(count).toBe(turns.reduce((sum, taken) => sum + taken, 0));
    const { etcd } = await cluster().leader();
    await until(
      () => STORE.queue(name, etcd.url),
      (queue) => queue.length === 0,
    );
  });

  const clientBy = (member: FaultMember) =>
    openClient({ endpoints: servedBy(member, cluster()).map(({ url }) => url) });

  async function byLock(name: string, member: FaultMember): Promise<Turn> {
    const lock = new Lock(clientBy(member), name);
    return async (work) => {
      await lock.acquire({ lockTtl: TTL, keepAlive: true });
      await work();
      expect(lock.signal.aborted).toBe(false);
      await release(lock);
      return true;
    };
  }

  async function byManager(name: string, member: FaultMember): Promise<Turn> {
    const locks = new LockManager(clientBy(member), { ttl: TTL });
    return async (work) => {
      await locks.request(name, work);
      return true;
    };
  }

  const byForeign = STORE.api === 'v2' ? byPython : byEtcdctl;

  async function byEtcdctl(name: string, member: FaultMember): Promise<Turn> {
    const endpoints = servedBy(member, cluster()).map(({ url }) => url);
    return async (work) => {
      const turn = lockByEtcdctl(`/_locks/${name}`, { endpoints, ttl: ETCDCTL_TTL });
      onTestFinished(() => turn.kill());
      const held = await turn.held.catch(() => undefined);
      if (held) await work();
      // If the release fails, the entry expires.
      await turn.release().catch(() => {});
      return held !== undefined;
    };
  }

  async function byPython(name: string, member: FaultMember): Promise<Turn> {
    const python = await startPython(member.url, { allowReconnect: true });
    onTestFinished(() => python.stop());
    const lock = await python.lock(name);
    return async (work) => {
      const began = performance.now();
      const acquired = await lock.acquire({ lockTtl: PYTHON_TTL }).catch((error) => pythonError(error) && false);
      const inTime = performance.now() - began < (PYTHON_TTL - LEFT) * 1000;
      if (acquired && inTime) await work();
      await released(lock);
      return acquired && inTime;
    };
  }
});

/** Returns an error of python-etcd, which its caller handles by a retry; throws any other error. */
function pythonError(error: unknown): PythonError {
  if (error instanceof PythonError) return error;
  throw error;
}

/** Retries the release until python-etcd knows of no key of this lock. */
async function released(lock: PythonLock): Promise<void> {
  await until(
    () =>
      lock.release().then(
        () => true,
        (error) => pythonError(error).type === NO_KEY,
      ),
    (done) => done,
  );
}
