import { Lock, LockManager } from '../../src/index.ts';
import type { LockClient } from '../../src/recipe/client.ts';

/** Requests the lock of that name. */
type Ask = (client: LockClient, name: string) => Promise<unknown>;

/** Every call that requests a lock, with and without waiting: none may retry when etcd denies access. */
export const waysOfAsking: readonly (readonly [string, Ask])[] = [
  ['acquire()', (client, name) => new Lock(client, name).acquire()],
  ['acquire() with a timeout', (client, name) => new Lock(client, name).acquire({ timeout: 20 })],
  ['acquire() without waiting', (client, name) => new Lock(client, name).acquire({ blocking: false })],
  ['request()', (client, name) => new LockManager(client).request(name, () => {})],
  ['request() with a timeout', (client, name) => new LockManager(client).request(name, { timeout: 20 }, () => {})],
  [
    'request() without waiting',
    (client, name) => new LockManager(client).request(name, { ifAvailable: true }, () => {}),
  ],
];
