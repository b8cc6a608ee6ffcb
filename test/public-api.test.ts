import { expect, test } from 'vitest';
import * as api from '../src/index.ts';
import * as server from '../src/server/index.ts';
import { runScript } from './support/script.ts';

test('etcd-v2-lock exports exactly these values', () => {
  expect(Object.keys(api).sort()).toEqual([
    'EtcdAlreadyExist',
    'EtcdClient',
    'EtcdClientClosed',
    'EtcdClusterIdChanged',
    'EtcdCompareFailed',
    'EtcdConnectionFailed',
    'EtcdDirNotEmpty',
    'EtcdEventIndexCleared',
    'EtcdException',
    'EtcdInsufficientPermissions',
    'EtcdKeyError',
    'EtcdKeyNotFound',
    'EtcdKeysLeft',
    'EtcdLeaderElectionInProgress',
    'EtcdLockExpired',
    'EtcdLockLost',
    'EtcdLockReleased',
    'EtcdNotDir',
    'EtcdNotFile',
    'EtcdRootReadOnly',
    'EtcdStaleToken',
    'EtcdTlsFailed',
    'EtcdUnusableAnswer',
    'EtcdValueError',
    'EtcdWatchTimedOut',
    'EtcdWatcherCleared',
    'Fence',
    'Lock',
    'LockManager',
  ]);
});

test('etcd-v2-lock/server exports exactly EmbeddedEtcd', () => {
  expect(Object.keys(server)).toEqual(['EmbeddedEtcd']);
});

test.each([
  ['imported', "import * as api from 'etcd-v2-lock'; import * as server from 'etcd-v2-lock/server';"],
  [
    'required',
    `import { createRequire } from 'node:module';
     const [api, server] = ['etcd-v2-lock', 'etcd-v2-lock/server'].map(createRequire(import.meta.url));`,
  ],
])('both entry points can be %s', async (_, loading) => {
  const { stdout, stderr } = await runScript(
    `${loading} console.log(typeof api.Lock, typeof server.EmbeddedEtcd.start);`,
  );
  expect(stdout.trim()).toBe('function function');
  expect(stderr).not.toContain('Error');
});
