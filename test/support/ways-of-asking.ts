import { type EtcdClient, Lock, LockManager } from '../../src/index.ts';

/** Asks for the lock of that name. */
type Ask = (client: EtcdClient, name: string) => Promise<unknown>;

/** Every way to ask for a lock, waiting for it or not: where etcd refuses us, none of them may try again. */
export const waysOfAsking: readonly (readonly [string, Ask])[] = [
  ['acquire()', (client, name) => new Lock(client, name).acquire()],
  ['acquire() with a timeout', (client, name) => new Lock(client, name).acquire({ timeout: 20 })],
  ['acquire() that does not wait', (client, name) => new Lock(client, name).acquire({ blocking: false })],
  ['request()', (client, name) => new LockManager(client).request(name, () => {})],
  ['request() with a timeout', (client, name) => new LockManager(client).request(name, { timeout: 20 }, () => {})],
  [
    'request() that does not wait',
    (client, name) => new LockManager(client).request(name, { ifAvailable: true }, () => {}),
  ],
];
