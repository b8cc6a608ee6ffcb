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
  EtcdLockLost,
  EtcdLockReleased,
  EtcdNotDir,
  EtcdNotFile,
  EtcdRootReadOnly,
  EtcdStaleToken,
  EtcdTlsFailed,
  EtcdUnusableAnswer,
  EtcdValueError,
  EtcdWatcherCleared,
  EtcdWatchTimedOut,
  type LockHolder,
  type StaleTokenFields,
} from './errors.ts';
export type * from './keys/api.ts';
export type { LockMode } from './lock/entry-value.ts';
export { Fence, type Raise } from './lock/fence.ts';
export type { Held, OpenHeld } from './lock/held.ts';
export { Lock } from './lock/lock.ts';
export { LockManager } from './lock/manager.ts';
export type { HoldOptions, LockManagerOptions, RequestOptions } from './lock/manager-options.ts';
export type { AcquireOptions, LockOptions } from './lock/options.ts';
export type { LockInfo, LockManagerSnapshot } from './lock/query.ts';
export type { Contender } from './lock/queue.ts';
export type { RequestTrace } from './lock/trace.ts';
export { type CloseOptions, EtcdClient } from './v2/client.ts';
export type { EtcdClientOptions, Pem } from './v2/options.ts';
export type { Member, Version } from './v2/wire.ts';
