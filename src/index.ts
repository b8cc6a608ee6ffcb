/**
 * Locks on etcd: on v2 in one queue with python-etcd's `Lock`, on v3 with Go's `concurrency.Mutex`.
 * @module etcd-v2-lock
 */

export { type EtcdApi, EtcdClient, type EtcdClientOptions } from './client.ts';
export {
  type EndpointFailure,
  EtcdClientClosed,
  EtcdClusterIdChanged,
  EtcdConnectionFailed,
  EtcdException,
  EtcdInsufficientPermissions,
  EtcdKeysLeft,
  EtcdLockExpired,
  EtcdLockHeld,
  EtcdLockLimitDiffers,
  EtcdLockLost,
  EtcdLockReleased,
  EtcdLockTimeout,
  /** @deprecated Use `EtcdLockTimeout`, which is the same class. */
  EtcdLockTimeout as EtcdWatchTimedOut,
  EtcdStaleToken,
  EtcdTlsFailed,
  EtcdUnusableAnswer,
  EtcdValueError,
  type LockHolder,
} from './errors.ts';
export type { CloseOptions } from './http/cluster.ts';
export type { MemberHealth, PingOptions } from './http/ping.ts';
export type { Pem } from './http/tls/settings.ts';
export type { Election } from './manager/election/election.ts';
export type { Leader } from './manager/election/leader.ts';
export type { CampaignOptions, ElectionOptions, ObserveOptions } from './manager/election/options.ts';
export type { Term } from './manager/election/term.ts';
export type { Held, OpenHeld } from './manager/held.ts';
export type { HeldLocks, OpenHeldLocks } from './manager/held-locks.ts';
export { LockManager } from './manager/manager.ts';
export type { OnceJob } from './manager/once/job.ts';
export type { OnceOptions } from './manager/once/options.ts';
export type { RecordedTick, Tick, TickOutcome, TickReport } from './manager/once/tick.ts';
export type { HoldOptions, LockManagerOptions, RequestOptions } from './manager/options.ts';
export type { LockInfo, LockManagerSnapshot } from './manager/query.ts';
export type { ReleaseOptions } from './manager/release.ts';
export type { Renewal, RequestMessages, RequestOutcome, RequestTrace } from './manager/trace.ts';
export { type Contender, Lock } from './python/lock.ts';
export type { AcquireOptions, LockOptions } from './python/options.ts';
export type { LockClient } from './recipe/client.ts';
export type { Entry } from './recipe/entries/entry.ts';
export type { LockMode } from './recipe/entries/entry-value.ts';
export { Fence, type Raise } from './recipe/fence.ts';
export type { FencingTokens } from './recipe/store.ts';
