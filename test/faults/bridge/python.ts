import { expect, onTestFinished } from 'vitest';
import { type Python, type PythonLock, startPython } from '../../../compat/python.ts';
import { type BridgeProcess, useBridges } from '../../support/bridge-process.ts';
import type { FaultCluster, FaultMember } from '../fault-cluster.ts';
import type { ForeignHold } from '../stores/store.ts';
import { servedBy } from '../use-cluster.ts';

/** Seconds after which python-etcd gives up a request. It repeats a read or a removal three times before it asks another bridge. */
export const PATIENCE = 2;

/** Seconds that python-etcd may spend at a bridge that is stopped: a poll without an answer, then four of one request. */
export const GIVES_UP = 5 * PATIENCE;

/** A python-etcd client with two bridges, of which it uses the first until that fails. */
export interface BridgedPython {
  readonly first: BridgeProcess;
  readonly second: BridgeProcess;
  readonly python: Python;
  /** Waits for a lock, with an entry of this TTL in seconds. */
  readonly takes: (ttl: number) => (name: string) => Promise<ForeignHold>;
}

/**
 * Starts python-etcd with two bridges that each prefer another member.
 * @param members the members that the bridges prefer
 */
export async function useBridgedPython(
  cluster: FaultCluster,
  members: readonly [FaultMember, FaultMember],
): Promise<BridgedPython> {
  const endpoints = members.map((member) => servedBy(member, cluster).map(({ url }) => url));
  const [first, second] = (await useBridges(endpoints)) as [BridgeProcess, BridgeProcess];
  const python = await startPython(first.url, { allowReconnect: true, readTimeout: PATIENCE });
  onTestFinished(() => python.stop());
  const takes = (ttl: number) => async (name: string) => taken(await python.lock(name), ttl);
  return { first, second, python, takes };
}

/** Waits for the lock, with an entry of this TTL in seconds. */
export async function taken(lock: PythonLock, ttl: number): Promise<ForeignHold> {
  expect(await lock.acquire({ lockTtl: ttl, timeout: PATIENCE })).toBe(true);
  const key = (await lock.state()).lockKey ?? '';
  return { key, token: BigInt(key.slice(key.lastIndexOf('/') + 1)), release: () => lock.release() };
}
