import { randomUUID } from 'node:crypto';
import { test } from 'vitest';
import type { OpenClient } from './store-client.ts';

/** A test with a lock name of its own, clients that are closed when it ends, and a separate view of the lock's queue. */
export const clientTest = (open: OpenClient) =>
  test
    .extend('lockName', () => `contract-${randomUUID()}`)
    .extend('openAnother', ({ onTestFinished }) => async () => {
      const client = await open();
      onTestFinished(() => client.close());
      return client;
    })
    .extend('observer', ({ openAnother }) => openAnother())
    .extend('queue', ({ observer, lockName }) => observer.view(lockName));
