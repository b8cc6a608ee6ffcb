import { printable } from './base/printable.ts';

/** The holder of a lock, as an error reports it. */
export interface LockHolder {
  /** Key of the holder's entry. */
  readonly key: string;
  /**
   * Value of the holder's entry, from which the fields below are parsed:
   * `[shared:|limit:<limit>:][id:<identity>:]<uuid>[@<label>[@<published>]]`.
   */
  readonly value: string;
  /** How the lock is held. A holder with a `limit` has the mode `'exclusive'`, although others may hold the lock too. */
  readonly mode: 'exclusive' | 'shared';
  /** The holder's `limit` option; undefined if it has none. */
  readonly limit: number | undefined;
  /** The holder's `identity` option; undefined if it has none. */
  readonly identity: string | undefined;
  /** The holder's `label` option, by default `hostname:pid`; undefined if it has none, as with python-etcd. */
  readonly label: string | undefined;
  /** Identifies the hold. Empty for locks of Go and Java. */
  readonly uuid: string;
  /**
   * Seconds until the key expires unless it is renewed, counted from when the queue was last read. Undefined if the key never expires; on
   * etcd v3 also in an `EtcdLockLimitDiffers`.
   */
  readonly ttl: number | undefined;
  /**
   * Whether the entry was made by this process (in a worker thread: by this thread). If true, and the holder waits for the
   * failed request, the process has deadlocked itself.
   */
  readonly own: boolean;
}

export interface EtcdErrorFields {
  /** etcd's own error number, such as 100. */
  readonly errorCode?: number | undefined;
  /** The etcd index at the time of the error. */
  readonly index?: number | undefined;
  /** HTTP status of etcd's answer; undefined if no answer arrived. */
  readonly httpStatus?: number | undefined;
  /** etcd's `cause` text, or the error that caused this one. */
  readonly cause?: unknown;
  /** Each failed attempt: the member and its error, in order. */
  readonly failures?: readonly EndpointFailure[] | undefined;
  /** True if the outcome of a write is unknown: etcd may have committed it, or may still commit it. */
  readonly outcomeUnknown?: boolean | undefined;
}

/** How one attempt at one member of the cluster failed. */
export interface EndpointFailure {
  /** URL of the member. */
  readonly endpoint: string;
  /** Why its answer could not be used, or did not arrive. */
  readonly error: Error;
}

/**
 * Base class of all errors of this package. Errors that python-etcd also has keep its class names; `code` is stable across versions.
 *
 * `message` is one line that is safe to log: unprintable characters are escaped as `\uXXXX`. All other fields keep
 * the text as received, such as etcd's `cause` and a holder's `value`.
 */
export class EtcdException extends Error {
  /** Name of the kind of error for programs, such as `ETCD_LOCK_LOST`. */
  readonly code: string = 'ETCD_EXCEPTION';
  /** etcd's own error number, such as 100; undefined if etcd sent none. */
  declare readonly errorCode: number | undefined;
  /** The etcd index at the time of the error, if known. */
  declare readonly index: number | undefined;
  /**
   * HTTP status of etcd's answer; undefined if no answer arrived. Not named `status`, because web frameworks use an error's
   * `status` for their own answer.
   */
  declare readonly httpStatus: number | undefined;
  /**
   * How each attempt at a member failed, in order, if that caused this error; else empty. Not enumerable: the message names each
   * member already, and a logger would repeat them.
   */
  declare readonly failures: readonly EndpointFailure[];
  /**
   * True if the outcome of a write is unknown: etcd may have committed it, or may still commit it. Read the key before you
   * write again.
   */
  readonly outcomeUnknown: boolean;

  static {
    // On the prototype, so that subclasses need no field for their names.
    Object.defineProperty(EtcdException.prototype, 'name', {
      get(this: EtcdException) {
        return this.constructor.name;
      },
    });
  }

  /** @internal */
  constructor(message: string, fields: EtcdErrorFields = {}) {
    super(printable(message), fields.cause === undefined ? undefined : { cause: fields.cause });
    const { errorCode, index, httpStatus } = fields;
    addKnown(this, { errorCode, index, httpStatus });
    Object.defineProperty(this, 'failures', { value: fields.failures ?? [] });
    this.outcomeUnknown = fields.outcomeUnknown ?? false;
  }
}

/** Adds fields to an object. A logger shows only those that are known. */
export function addKnown<T extends object, F extends object>(target: T, fields: F): T & F {
  for (const [field, value] of Object.entries(fields))
    Object.defineProperty(target, field, {
      value,
      enumerable: value !== undefined,
      writable: true,
      configurable: true,
    });
  return target as T & F;
}

/** Base class of the errors that concern the key of a request. */
export class EtcdKeyError extends EtcdException {
  override readonly code: string = 'ETCD_KEY_ERROR';
}
/** Code 100: the key does not exist. */
export class EtcdKeyNotFound extends EtcdKeyError {
  override readonly code = 'ETCD_KEY_NOT_FOUND';
}
/** Code 102: the key is a directory, but the request needs a file. */
export class EtcdNotFile extends EtcdKeyError {
  override readonly code = 'ETCD_NOT_FILE';
}
/** Code 104: a part of the key's path is a file, but has to be a directory. */
export class EtcdNotDir extends EtcdKeyError {
  override readonly code = 'ETCD_NOT_DIR';
}
/** Code 105: the key exists already. */
export class EtcdAlreadyExist extends EtcdKeyError {
  override readonly code = 'ETCD_ALREADY_EXIST';
}
/** Code 107: etcd does not allow changes of the root directory. */
export class EtcdRootReadOnly extends EtcdKeyError {
  override readonly code = 'ETCD_ROOT_READ_ONLY';
}

/**
 * Codes 200 to 212: etcd rejected a parameter of the request. Also thrown by a `Lock` without an entry or for an unknown uuid, by
 * `LockManager.once` for a record that another program wrote, and on v3 for a key that another program uses.
 */
export class EtcdValueError extends EtcdException {
  override readonly code: string = 'ETCD_VALUE_ERROR';
}
/** Code 101: the condition of a compare-and-swap or compare-and-delete did not hold. */
export class EtcdCompareFailed extends EtcdValueError {
  override readonly code = 'ETCD_COMPARE_FAILED';
}
/** Code 108: the directory cannot be deleted because it is not empty. */
export class EtcdDirNotEmpty extends EtcdValueError {
  override readonly code = 'ETCD_DIR_NOT_EMPTY';
}

/**
 * etcd refused the request for lack of credentials or permissions. On v2: code 110, or HTTP status 401 or 403 without a code. On
 * v3: code 7 or 16, a wrong password, or a client certificate that the gateway does not accept. The message names the member, the
 * user and the key, never the password.
 */
export class EtcdInsufficientPermissions extends EtcdException {
  override readonly code = 'ETCD_INSUFFICIENT_PERMISSIONS';
}
/** Code 301: the cluster has no leader at the moment. */
export class EtcdLeaderElectionInProgress extends EtcdException {
  override readonly code = 'ETCD_LEADER_ELECTION_IN_PROGRESS';
}
/** Code 400: etcd ended the watch while it restored its data. */
export class EtcdWatcherCleared extends EtcdException {
  override readonly code = 'ETCD_WATCHER_CLEARED';
}
/** Code 401: the event history no longer contains the requested index. */
export class EtcdEventIndexCleared extends EtcdException {
  override readonly code = 'ETCD_EVENT_INDEX_CLEARED';
}

/** No member could serve the call: each was unreachable, did not answer in time, or answered with an error such as HTTP 5xx. */
export class EtcdConnectionFailed extends EtcdException {
  override readonly code: string = 'ETCD_CONNECTION_FAILED';
}
/**
 * TLS failed at every member: one side does not trust the other's certificate, they have no TLS version or cipher in common, or the server uses no TLS.
 * Acquiring a lock does not retry this error, because a retry would fail as well.
 */
export class EtcdTlsFailed extends EtcdConnectionFailed {
  override readonly code = 'ETCD_TLS_FAILED';
}
/** The client was closed before the call was answered. */
export class EtcdClientClosed extends EtcdException {
  override readonly code = 'ETCD_CLIENT_CLOSED';
}
/**
 * The answer does not come from the chosen API of etcd, but from a proxy, or from a server without `--enable-v2` or without the v3
 * gateway. Also thrown for an answer that is larger than 64 MiB, has a missing or invalid field, or is about another key than the
 * requested one.
 */
export class EtcdUnusableAnswer extends EtcdException {
  override readonly code = 'ETCD_UNUSABLE_ANSWER';
}
/** The answer came from a different cluster than the own entry, or the cluster's id is not `expectedClusterId`. */
export class EtcdClusterIdChanged extends EtcdException {
  override readonly code = 'ETCD_CLUSTER_ID_CHANGED';
}
/** `close()` timed out before it could remove these `keys`. They may block others until their TTL has passed. */
export class EtcdKeysLeft extends EtcdException {
  override readonly code = 'ETCD_KEYS_LEFT';
  /**
   * What may be left, as exactly as this process knows:
   * - the key of an entry, such as `/_locks/file1/00000000000000000042`
   * - on etcd v2 `/_locks/file1/? (value …)`, if etcd has not answered the append: the entry may exist, and only its value is known
   * - the directory of a queue, if a call was still under way in it
   * - on etcd v3 `lease <id>`, if a late append may still create an entry with that lease
   */
  readonly keys: readonly string[];
  /** @internal */
  constructor(message: string, keys: readonly string[]) {
    super(message);
    this.keys = keys;
  }
}

export interface WaitErrorFields extends EtcdErrorFields {
  readonly holder?: LockHolder | undefined;
}

export interface ExpiredFields extends WaitErrorFields {
  /** Whether the store has ended the entry by itself, so that no other client has removed it. Default: not known. */
  readonly isEndedByStore?: boolean;
}

export interface TimeoutFields extends WaitErrorFields {
  readonly reason: EtcdLockTimeout['reason'];
}

/**
 * The timeout passed before the lock was acquired. Until 0.3 its class was `EtcdWatchTimedOut`: its `name` and `code` are still those,
 * because programs compare them. `reason` says whether the lock was held or etcd could not be reached. Unlike in
 * python-etcd, not an `EtcdConnectionFailed`.
 */
export class EtcdLockTimeout extends EtcdException {
  override readonly code = 'ETCD_WATCH_TIMED_OUT';
  /**
   * What the call waited for when the timeout passed, as far as it knew:
   * - `held`: etcd answered the last request. Another client, or another request of this process, held the lock or was before this one.
   * - `unreachable`: etcd did not answer the last request. `failures` says why, unless the timeout passed before the first answer.
   */
  readonly reason: 'held' | 'unreachable';
  /** The holder when the queue was last read. In an outage, it may have released the lock since. */
  declare readonly holder: LockHolder | undefined;

  static {
    Object.defineProperty(EtcdLockTimeout.prototype, 'name', { value: 'EtcdWatchTimedOut' });
  }

  /** @internal */
  constructor(message: string, fields: TimeoutFields) {
    super(message, fields);
    this.reason = fields.reason;
    addKnown(this, { holder: fields.holder });
  }
}
/** The own entry is gone, was replaced by another entry, was not renewed in time, or was held for `maxHold` seconds. */
export class EtcdLockExpired extends EtcdException {
  override readonly code = 'ETCD_LOCK_EXPIRED';
  /** The holder when the queue was last read, if known. */
  declare readonly holder: LockHolder | undefined;
  /** @internal */
  declare readonly isEndedByStore: boolean;
  /** @internal */
  constructor(message: string, fields: ExpiredFields = {}) {
    super(message, fields);
    addKnown(this, { holder: fields.holder });
    Object.defineProperty(this, 'isEndedByStore', { value: fields.isEndedByStore ?? false });
  }
}
/** `LockManager.release` without `force` was asked to remove an entry that holds the lock. */
export class EtcdLockHeld extends EtcdException {
  override readonly code = 'ETCD_LOCK_HELD';
  /** The entry that holds the lock. */
  declare readonly holder: LockHolder | undefined;
  /** @internal */
  constructor(message: string, fields: WaitErrorFields = {}) {
    super(message, fields);
    addKnown(this, { holder: fields.holder });
  }
}
/**
 * A request has the option `limit`, and another entry in the queue has another limit. Requests for a lock may have no limit, but all
 * that have one must have the same.
 */
export class EtcdLockLimitDiffers extends EtcdException {
  override readonly code = 'ETCD_LOCK_LIMIT_DIFFERS';
  /** The entry with the other limit. Not always a holder: it may still wait for the lock. */
  declare readonly holder: LockHolder | undefined;
  /** @internal */
  constructor(message: string, fields: WaitErrorFields = {}) {
    super(message, fields);
    addKnown(this, { holder: fields.holder });
  }
}
/** `release()` was called while `acquire()` was under way, or `held.assertHeld()` was called after the release. */
export class EtcdLockReleased extends EtcdException {
  override readonly code = 'ETCD_LOCK_RELEASED';
}
/** The lock was lost while it was held; `cause` says why. */
export class EtcdLockLost extends EtcdException {
  override readonly code = 'ETCD_LOCK_LOST';
}

export interface StaleTokenFields {
  readonly token: bigint;
  readonly highest: bigint;
}

/**
 * A write had a lower fencing token than an earlier one: the sender has lost the lock. Exception: shared holders, and holders with a
 * `limit`. Their writes must not be fenced.
 */
export class EtcdStaleToken extends EtcdException {
  override readonly code = 'ETCD_STALE_TOKEN';
  /** The token of the refused write. */
  readonly token: bigint;
  /** The highest token seen. */
  readonly highest: bigint;
  /** @internal */
  constructor(message: string, { token, highest }: StaleTokenFields) {
    super(message);
    this.token = token;
    this.highest = highest;
  }
}

/** etcd's code for a request that raft did not settle in time: a write may still be committed. */
const RAFT_INTERNAL_ERROR = 300;
/** gRPC's code for a member that has no space left. Such a member still keeps leases alive, but may refuse a read. */
const RESOURCE_EXHAUSTED = 8;

/** Returns the failures of members that caused this error, if any. */
export const failuresOf = (error: unknown): readonly EndpointFailure[] =>
  error instanceof EtcdException ? error.failures : [];

/** Whether the same call may succeed later or on another member: a lost connection, no leader, a cleared event history. */
export function isTransient(error: unknown): error is EtcdException {
  return (
    (error instanceof EtcdConnectionFailed && !(error instanceof EtcdTlsFailed)) ||
    error instanceof EtcdLeaderElectionInProgress ||
    error instanceof EtcdWatcherCleared ||
    error instanceof EtcdEventIndexCleared ||
    (error instanceof EtcdException && error.errorCode === RAFT_INTERNAL_ERROR)
  );
}

/**
 * Whether to retry work on an existing entry after this error: renewing it, removing it, or watching its queue. Unlike
 * {@link isTransient}, also true for an answer that is not etcd's, for failed TLS and for a full database: none of them shows
 * that the entry is gone.
 */
export const mayPass = (error: unknown): boolean =>
  isTransient(error) ||
  error instanceof EtcdUnusableAnswer ||
  error instanceof EtcdTlsFailed ||
  (error instanceof EtcdException && error.errorCode === RESOURCE_EXHAUSTED);

/** Whether the error says that etcd has not carried out the request, and never will. */
export const isNotCarriedOut = (error: unknown): boolean => error instanceof EtcdException && !error.outcomeUnknown;

/** Whether the error says that etcd may have carried out the request, or may still do so. */
export const mayBeCarriedOut = (error: unknown): boolean => error instanceof EtcdException && error.outcomeUnknown;
