import { hostname } from 'node:os';
import { LockManager } from '../../../src/manager/manager.ts';
import type { LockManagerOptions } from '../../../src/manager/options.ts';
import { clientTest } from '../stores/client-test.ts';
import type { OpenClient, StoreClient } from '../stores/store-client.ts';

/** A client and a manager on it, as in one process. Unlike real processes, they all know each other's live entries. */
export interface Process {
  readonly client: StoreClient;
  readonly locks: LockManager;
}

export const DEFAULT_LABEL = `${hostname()}:${process.pid}`;

/** Returns the value of an entry with the default label. @param value the value without a label */
export const labelled = (value: string): string => `${value}@${encodeURIComponent(DEFAULT_LABEL)}`;

/** A test whose processes use the same lock. */
export const managerTest = (open: OpenClient) =>
  clientTest(open)
    .extend('makeProcess', ({ openAnother }) => async (options?: LockManagerOptions): Promise<Process> => {
      const client = await openAnother();
      return { client, locks: new LockManager(client, options) };
    })
    .extend('a', ({ makeProcess }) => makeProcess())
    .extend('b', ({ makeProcess }) => makeProcess())
    /** The test closes the client itself. */
    .extend('openUnclosed', () => async () => open());

export type ManagerTest = ReturnType<typeof managerTest>;
