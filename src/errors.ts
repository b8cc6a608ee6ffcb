/** Who stood in the way when waiting was in vain. */
export interface LockHolder {
  readonly key: string;
  /** What the entry carries: the uuid of its lock. */
  readonly value: string;
  /** Seconds its key had left when last listed; undefined when it never expires. */
  readonly ttl: number | undefined;
}

export interface EtcdErrorFields {
  /** etcd's own error number, such as 100. */
  readonly errorCode?: number | undefined;
  /** The etcd index at the time of the error. */
  readonly index?: number | undefined;
  /** Status of the answer, where there was one. */
  readonly status?: number | undefined;
  /** etcd's `cause` text, or the error beneath this one. */
  readonly cause?: unknown;
  /** Members that were asked and what each failed with. */
  readonly failures?: readonly EndpointFailure[] | undefined;
  /** True where a write may have happened, or may still happen. */
  readonly outcomeUnknown?: boolean | undefined;
}

/** What one member of the cluster answered, or failed with. */
export interface EndpointFailure {
  readonly endpoint: string;
  readonly error: Error;
}

/** Base of every error this package makes. Class names are python-etcd's; `code` is stable across versions. */
export class EtcdException extends Error {
  readonly code: string = 'ETCD_EXCEPTION';
  readonly errorCode: number | undefined;
  readonly index: number | undefined;
  readonly status: number | undefined;
  readonly failures: readonly EndpointFailure[];
  /** True where a write may have happened, or may still happen: look before writing again. */
  readonly outcomeUnknown: boolean;

  static {
    // On the prototype, so that each subclass names itself without a field of its own.
    Object.defineProperty(EtcdException.prototype, 'name', {
      get(this: EtcdException) {
        return this.constructor.name;
      },
    });
  }

  constructor(message: string, fields: EtcdErrorFields = {}) {
    super(message, fields.cause === undefined ? undefined : { cause: fields.cause });
    this.errorCode = fields.errorCode;
    this.index = fields.index;
    this.status = fields.status;
    this.failures = fields.failures ?? [];
    this.outcomeUnknown = fields.outcomeUnknown ?? false;
  }
}

export class EtcdKeyError extends EtcdException {
  override readonly code: string = 'ETCD_KEY_ERROR';
}
/** Code 100. */
export class EtcdKeyNotFound extends EtcdKeyError {
  override readonly code = 'ETCD_KEY_NOT_FOUND';
}
/** Code 102. */
export class EtcdNotFile extends EtcdKeyError {
  override readonly code = 'ETCD_NOT_FILE';
}
/** Code 104. */
export class EtcdNotDir extends EtcdKeyError {
  override readonly code = 'ETCD_NOT_DIR';
}
/** Code 105. */
export class EtcdAlreadyExist extends EtcdKeyError {
  override readonly code = 'ETCD_ALREADY_EXIST';
}
/** Code 107. */
export class EtcdRootReadOnly extends EtcdKeyError {
  override readonly code = 'ETCD_ROOT_READ_ONLY';
}

/** Codes 200 to 212, and a lock asked for something it has no value for. */
export class EtcdValueError extends EtcdException {
  override readonly code: string = 'ETCD_VALUE_ERROR';
}
/** Code 101: the condition of a compare-and-swap or compare-and-delete did not hold. */
export class EtcdCompareFailed extends EtcdValueError {
  override readonly code = 'ETCD_COMPARE_FAILED';
}
/** Code 108. */
export class EtcdDirNotEmpty extends EtcdValueError {
  override readonly code = 'ETCD_DIR_NOT_EMPTY';
}

/** Code 110, and answers 401 or 403 without a code. */
export class EtcdInsufficientPermissions extends EtcdException {
  override readonly code = 'ETCD_INSUFFICIENT_PERMISSIONS';
}
/** Code 301. */
export class EtcdLeaderElectionInProgress extends EtcdException {
  override readonly code = 'ETCD_LEADER_ELECTION_IN_PROGRESS';
}
/** Code 400. */
export class EtcdWatcherCleared extends EtcdException {
  override readonly code = 'ETCD_WATCHER_CLEARED';
}
/** Code 401: the history no longer reaches back to the index asked for. */
export class EtcdEventIndexCleared extends EtcdException {
  override readonly code = 'ETCD_EVENT_INDEX_CLEARED';
}

/** No member gave a usable answer. */
export class EtcdConnectionFailed extends EtcdException {
  override readonly code: string = 'ETCD_CONNECTION_FAILED';
}
/** The client was closed before the call was answered. */
export class EtcdClientClosed extends EtcdException {
  override readonly code = 'ETCD_CLIENT_CLOSED';
}
/** What answered does not speak etcd's v2 keys API: a proxy's page, or a server without `--enable-v2`. */
export class EtcdUnusableAnswer extends EtcdException {
  override readonly code = 'ETCD_UNUSABLE_ANSWER';
}
/** The answer came from another cluster than before, or than expected. */
export class EtcdClusterIdChanged extends EtcdException {
  override readonly code = 'ETCD_CLUSTER_ID_CHANGED';
}
/** `close()` ran out of time: these keys stay until their TTL has passed. */
export class EtcdKeysLeft extends EtcdException {
  override readonly code = 'ETCD_KEYS_LEFT';
  readonly keys: readonly string[];
  constructor(message: string, keys: readonly string[]) {
    super(message);
    this.keys = keys;
  }
}

export interface WaitErrorFields extends EtcdErrorFields {
  readonly holder?: LockHolder | undefined;
}

/** The timeout passed before the lock was acquired. */
export class EtcdWatchTimedOut extends EtcdConnectionFailed {
  override readonly code = 'ETCD_WATCH_TIMED_OUT';
  /** Who held the lock when the queue was last read. */
  readonly holder: LockHolder | undefined;
  constructor(message: string, fields: WaitErrorFields = {}) {
    super(message, fields);
    this.holder = fields.holder;
  }
}
/** The entry in the queue is gone, is another's, or was not renewed in time. */
export class EtcdLockExpired extends EtcdException {
  override readonly code = 'ETCD_LOCK_EXPIRED';
  /** Who held the lock when the queue was last read, where that is known. */
  readonly holder: LockHolder | undefined;
  constructor(message: string, fields: WaitErrorFields = {}) {
    super(message, fields);
    this.holder = fields.holder;
  }
}
/** `release()` was called while `acquire()` waited. */
export class EtcdLockReleased extends EtcdException {
  override readonly code = 'ETCD_LOCK_RELEASED';
}

const byErrorCode = new Map<number, new (message: string, fields: EtcdErrorFields) => EtcdException>([
  [100, EtcdKeyNotFound],
  [101, EtcdCompareFailed],
  [102, EtcdNotFile],
  [104, EtcdNotDir],
  [105, EtcdAlreadyExist],
  [107, EtcdRootReadOnly],
  [108, EtcdDirNotEmpty],
  [110, EtcdInsufficientPermissions],
  ...[200, 201, 202, 203, 204, 205, 206, 207, 208, 209, 210, 211, 212].map((code) => [code, EtcdValueError] as const),
  [300, EtcdException],
  [301, EtcdLeaderElectionInProgress],
  [400, EtcdWatcherCleared],
  [401, EtcdEventIndexCleared],
]);

/** The code etcd gives when raft did not settle a request in time: a write may still be committed. */
const RAFT_INTERNAL_ERROR = 300;

/** The error for one of etcd's own error numbers. */
export function fromErrorCode(errorCode: number, message: string, fields: EtcdErrorFields): EtcdException {
  const ErrorClass = byErrorCode.get(errorCode) ?? EtcdException;
  return new ErrorClass(message, { ...fields, errorCode });
}

/** True where the same call may well succeed later or elsewhere: a lost connection, no leader, a cleared history. */
export function isTransient(error: unknown): error is EtcdException {
  if (error instanceof EtcdWatchTimedOut) return false;
  return (
    error instanceof EtcdConnectionFailed ||
    error instanceof EtcdLeaderElectionInProgress ||
    error instanceof EtcdWatcherCleared ||
    error instanceof EtcdEventIndexCleared ||
    (error instanceof EtcdException && error.errorCode === RAFT_INTERNAL_ERROR)
  );
}
