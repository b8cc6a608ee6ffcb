import { type EtcdClientOptions, LockManager, type LockManagerOptions } from '../../src/index.ts';
import { useClient } from './locks.ts';

/** A manager on a client of its own, as another process would have. */
export const useManager = (options: LockManagerOptions = {}, client: EtcdClientOptions = {}): LockManager =>
  new LockManager(useClient(client), options);

/** Keeps the event loop busy, so that no timer fires meanwhile. */
export function block(seconds: number): void {
  const end = performance.now() + seconds * 1000;
  while (performance.now() < end);
}
