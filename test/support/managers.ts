import { type EtcdClientOptions, LockManager, type LockManagerOptions } from '../../src/index.ts';
import { useClient } from './locks.ts';

/** Returns a manager with its own client, as another process would have. */
export const useManager = (options: LockManagerOptions = {}, client: EtcdClientOptions = {}): LockManager =>
  new LockManager(useClient(client), options);

/** Blocks the event loop, so that no timer fires. */
export function block(seconds: number): void {
  const end = performance.now() + seconds * 1000;
  while (performance.now() < end);
}
