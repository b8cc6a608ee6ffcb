import { type EtcdClientOptions, LockManager, type LockManagerOptions } from '../../src/index.ts';
import { useClient } from './locks.ts';

/** A manager on a client of its own, as another process would have. */
export const useManager = (options: LockManagerOptions = {}, client: EtcdClientOptions = {}): LockManager =>
  new LockManager(useClient(client), options);

/** Resolves with the reason once the signal aborts. */
export const abortOf = (signal: AbortSignal): Promise<unknown> =>
  new Promise((resolve) => {
    if (signal.aborted) resolve(signal.reason);
    signal.addEventListener('abort', () => resolve(signal.reason), { once: true });
  });

/** Keeps the event loop busy, so that no timer fires meanwhile. */
export function block(seconds: number): void {
  const end = performance.now() + seconds * 1000;
  while (performance.now() < end);
}
