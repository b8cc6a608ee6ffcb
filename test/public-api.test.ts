import { expect, test } from 'vitest';
import * as api from '../src/index.ts';

test('the package exports exactly this', () => {
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
    'EtcdLockReleased',
    'EtcdNotDir',
    'EtcdNotFile',
    'EtcdRootReadOnly',
    'EtcdUnusableAnswer',
    'EtcdValueError',
    'EtcdWatchTimedOut',
    'EtcdWatcherCleared',
    'Lock',
  ]);
});
