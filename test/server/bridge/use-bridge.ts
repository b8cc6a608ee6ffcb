import { inject, onTestFinished } from 'vitest';
import { type Python, startPython } from '../../../compat/python.ts';
import { EtcdClient } from '../../../src/client.ts';
import { LockManager } from '../../../src/manager/manager.ts';
import { Bridge, type BridgeOptions } from '../../../src/server/bridge/bridge.ts';
import { V2Client } from '../../../src/v2/client.ts';
import { V3Client } from '../../../src/v3/client.ts';

/** Starts a bridge to the shared etcd, until the end of the test. */
export async function useBridge(options: BridgeOptions = {}): Promise<Bridge> {
  const bridge = await Bridge.start({ endpoints: inject('etcd'), ...options });
  onTestFinished(() => bridge.stop());
  return bridge;
}

/** Locks of a client of its own, on etcd v3 or through bridges. */
export function useLocks(api: 'v2' | 'v3', endpoints: string | readonly string[] = inject('etcd')): LockManager {
  const client = new EtcdClient({ api, endpoints });
  onTestFinished(() => client.close());
  // Long, because tests that count holds do not look for losses.
  return new LockManager(client, { ttl: 60 });
}

/** A process of python-etcd, until the end of the test. */
export async function usePython(etcd: string, options: Parameters<typeof startPython>[1] = {}): Promise<Python> {
  const python = await startPython(etcd, options);
  onTestFinished(() => python.stop());
  return python;
}

/** The calls for keys of etcd v2, through a bridge. */
export function useKeys(bridge: Bridge): V2Client {
  const client = new V2Client({ endpoints: bridge.url });
  onTestFinished(() => client.close());
  return client;
}

/** The requests that locks on etcd v3 are made of. */
export function useV3(): V3Client {
  const client = new V3Client({ endpoints: inject('etcd') });
  onTestFinished(() => client.close());
  return client;
}
