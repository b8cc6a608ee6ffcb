export {
  type EndpointFailure,
  EtcdAlreadyExist,
  EtcdClientClosed,
  EtcdClusterIdChanged,
  EtcdCompareFailed,
  EtcdConnectionFailed,
  EtcdDirNotEmpty,
  type EtcdErrorFields,
  EtcdEventIndexCleared,
  EtcdException,
  EtcdInsufficientPermissions,
  EtcdKeyError,
  EtcdKeyNotFound,
  EtcdKeysLeft,
  EtcdLeaderElectionInProgress,
  EtcdLockExpired,
  EtcdLockReleased,
  EtcdNotDir,
  EtcdNotFile,
  EtcdRootReadOnly,
  EtcdUnusableAnswer,
  EtcdValueError,
  EtcdWatcherCleared,
  EtcdWatchTimedOut,
  type LockHolder,
} from './errors.ts';
export type * from './keys/api.ts';
export { Lock } from './lock/lock.ts';
export type { AcquireOptions, LockOptions } from './lock/options.ts';
export type { Contender } from './lock/queue.ts';
export { type CloseOptions, EtcdClient } from './v2/client.ts';
export type { EtcdClientOptions, Pem } from './v2/options.ts';
export type { Member, Version } from './v2/wire.ts';
