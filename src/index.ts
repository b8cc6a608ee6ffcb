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
export type { Pem } from './http/options.ts';
export type { Held, OpenHeld } from './manager/held.ts';
export { LockManager } from './manager/manager.ts';
export type { HoldOptions, LockManagerOptions, RequestOptions } from './manager/options.ts';
export type { LockInfo, LockManagerSnapshot } from './manager/query.ts';
export type { Renewal, RequestOutcome, RequestTrace } from './manager/trace.ts';
export { type Contender, Lock } from './python/lock.ts';
export type { AcquireOptions, LockOptions } from './python/options.ts';
export type { LockMode } from './recipe/entry-value.ts';
export { Fence, type Raise } from './recipe/fence.ts';
export type { Entry, LockClient } from './recipe/store.ts';
export { type CloseOptions, EtcdClient } from './v2/client.ts';
export type * from './v2/keys-api.ts';
export type { EtcdClientOptions } from './v2/options.ts';
export type { Member, Version } from './v2/wire.ts';
