import { expect, onTestFinished } from 'vitest';
import { ExclusiveResource } from '../../../compat/exclusive-resource.ts';
import { portOf } from '../../../compat/python.ts';
import type { LockManager } from '../../../src/manager/manager.ts';
import { EmbeddedEtcd } from '../../../src/server/embedded.ts';
import { lockByEtcdctl } from '../../support/etcdctl.mjs';
import { entriesBelow } from '../../support/gateway.ts';
import { freshName, raw } from '../../support/locks.ts';
import { useBridge, useLocks, usePython } from './use-bridge.ts';

/** A client of etcd v3 that is no part of this package. */
export interface Foreign {
  readonly times: number;
  /** Acquires the lock. Resolves to its token, and to what releases it. */
  hold(lock: string): Promise<{ readonly token: bigint; release(): Promise<unknown> }>;
}

const CYCLES = 400;
const OURS = { python: 70, v3: 70, v2: 50 };

/** How many of the cycles are for foreign clients. */
export const FOREIGN_CYCLES = CYCLES - 2 * (OURS.python + OURS.v3 + OURS.v2);

export const byEtcdctl = (etcd: string, times: number): Foreign => ({
  times,
  async hold(lock) {
    const go = lockByEtcdctl(lock, { endpoints: [etcd], ttl: 60 });
    const { token } = await go.held;
    return { token, release: () => go.release() };
  },
});

/** The create revision in the name that a bridge gives an entry. */
export const rankIn = (key: string): bigint => BigInt(key.slice(key.lastIndexOf('/') + 1));

/**
 * Counts to 400 on a counter that only the lock protects: two python-etcd through two bridges, two Node on etcd v3, two on etcd v2
 * through the bridges, and the foreign clients. Expects that no update is lost, and that each client got the lock in order.
 */
export async function expectOneCounter(etcd: string, foreign: readonly Foreign[]): Promise<void> {
  const name = freshName();
  const endpoints = { endpoints: etcd };
  const [one, other, counting] = [await useBridge(endpoints), await useBridge(endpoints), await EmbeddedEtcd.start()];
  onTestFinished(() => counting.stop());
  const [counter, inside] = ['/counter', '/inside'];
  const resource = new ExclusiveResource();
  /** Adds 1 to the counter, and fails if another holder does so, too. */
  const addOne = (holder: string) =>
    resource.use(holder, async () => {
      const entered = await raw('PUT', `${inside}?prevExist=false`, { value: 'Node' }, counting.url);
      expect(entered.status).toBe(201);
      const { body } = await raw('GET', counter, undefined, counting.url);
      await raw('PUT', counter, { value: String(Number(body.node?.value ?? 0) + 1) }, counting.url);
      await raw('DELETE', `${inside}?prevValue=Node`, undefined, counting.url);
    });
  const byPython = [one, other].map(async ({ url }) => {
    const lock = await (await usePython(url)).lock(name);
    const counterPort = portOf(counting.url);
    const keys = await lock.cycle({ times: OURS.python, counter, inside, counterPort, lockTtl: 60 });
    return keys.map(rankIn);
  });
  const byNode = async (locks: LockManager, times: number): Promise<bigint[]> => {
    const tokens: bigint[] = [];
    for (let i = 0; i < times; i += 1)
      await locks.request(name, async ({ key, fencingToken }) => {
        tokens.push(fencingToken);
        await addOne(key);
      });
    return tokens;
  };
  const byForeign = async ({ times, hold }: Foreign, index: number): Promise<bigint[]> => {
    const tokens: bigint[] = [];
    for (let i = 0; i < times; i += 1) {
      const { token, release } = await hold(`/_locks/${name}`);
      tokens.push(token);
      await addOne(`foreign ${index}`);
      await release();
    }
    return tokens;
  };
  const held = await Promise.all([
    ...byPython,
    ...[0, 1].map(() => byNode(useLocks('v3', etcd), OURS.v3)),
    ...[one, other].map(({ url }) => byNode(useLocks('v2', url), OURS.v2)),
    ...foreign.map(byForeign),
  ]);
  expect(held.flat()).toHaveLength(CYCLES);
  const { body } = await raw('GET', counter, undefined, counting.url);
  expect(Number(body.node.value)).toBe(CYCLES);
  for (const ranks of held) expect(ranks).toEqual(ranks.toSorted((a, b) => (a < b ? -1 : 1)));
  expect(await entriesBelow(`/_locks/${name}/`, etcd)).toEqual([]);
}
