/** A request that etcd v3 refuses, with gRPC's code and etcd's own message. */
export class EtcdV3Refusal extends Error {
  override readonly name = 'EtcdV3Refusal';
  readonly code: number;

  constructor(code: number, message: string) {
    super(message);
    this.code = code;
  }
}

// gRPC's codes.
const CANCELED = 1;
export const UNKNOWN = 2;
const INVALID_ARGUMENT = 3;
export const NOT_FOUND = 5;
const PERMISSION_DENIED = 7;
const RESOURCE_EXHAUSTED = 8;
const FAILED_PRECONDITION = 9;
const OUT_OF_RANGE = 11;
export const UNIMPLEMENTED = 12;
const UNAVAILABLE = 14;
const UNAUTHENTICATED = 16;

/** A request that is refused before etcd's server sees it. */
export const invalid = (message: string): EtcdV3Refusal => new EtcdV3Refusal(INVALID_ARGUMENT, message);

const refusal = (code: number, message: string) => (): EtcdV3Refusal => new EtcdV3Refusal(code, message);
const by = (code: number, message: string) => refusal(code, `etcdserver: ${message}`);

export const emptyKey = by(INVALID_ARGUMENT, 'key is not provided');
export const keyNotFound = by(INVALID_ARGUMENT, 'key not found');
export const valueProvided = by(INVALID_ARGUMENT, 'value is provided');
export const leaseProvided = by(INVALID_ARGUMENT, 'lease is provided');
export const tooManyOps = by(INVALID_ARGUMENT, 'too many operations in txn request');
export const duplicateKey = by(INVALID_ARGUMENT, 'duplicate key given in txn request');
export const invalidSortOption = by(INVALID_ARGUMENT, 'invalid sort option');
export const tooLarge = by(INVALID_ARGUMENT, 'request is too large');
export const compacted = by(OUT_OF_RANGE, 'mvcc: required revision has been compacted');
export const futureRevision = by(OUT_OF_RANGE, 'mvcc: required revision is a future revision');
export const leaseNotFound = by(NOT_FOUND, 'requested lease not found');
export const leaseExists = by(FAILED_PRECONDITION, 'lease already exists');
export const leaseTtlTooLarge = by(OUT_OF_RANGE, 'too large lease TTL');

export const authNotEnabled = by(FAILED_PRECONDITION, 'authentication is not enabled');
export const authFailed = by(INVALID_ARGUMENT, 'authentication failed, invalid user ID or password');
export const noPasswordUser = refusal(UNKNOWN, 'auth: authentication failed, password was given for no password user');
export const invalidAuthToken = by(UNAUTHENTICATED, 'invalid auth token');
export const permissionDenied = by(PERMISSION_DENIED, 'permission denied');
export const invalidAuthManagement = by(INVALID_ARGUMENT, 'invalid auth management');
export const noRootUser = by(FAILED_PRECONDITION, 'root user does not exist');
export const noRootRole = by(FAILED_PRECONDITION, 'root user does not have root role');
export const emptyUser = by(INVALID_ARGUMENT, 'user name is empty');
export const userExists = by(FAILED_PRECONDITION, 'user name already exists');
export const userNotFound = by(FAILED_PRECONDITION, 'user name not found');
export const emptyRole = by(INVALID_ARGUMENT, 'role name is empty');
export const roleExists = by(FAILED_PRECONDITION, 'role name already exists');
export const roleNotFound = by(FAILED_PRECONDITION, 'role name not found');
export const roleNotGranted = by(FAILED_PRECONDITION, 'role is not granted to the user');
export const permissionNotGiven = by(INVALID_ARGUMENT, 'permission not given');
export const permissionNotGranted = by(FAILED_PRECONDITION, 'permission is not granted to the role');

export const canceled = refusal(CANCELED, 'context canceled');

/** The body is longer than this server reads. */
export const bodyTooLong = refusal(RESOURCE_EXHAUSTED, 'grpc: received message larger than max');

/** The ranges of a transaction find more keys than this server returns. */
export const tooManyFound = (most: number): EtcdV3Refusal =>
  new EtcdV3Refusal(RESOURCE_EXHAUSTED, `limit of ${most} keys in the ranges of one transaction reached`);

/** A body contains more requests than this server answers. */
export const tooManyRequests = (most: number): EtcdV3Refusal =>
  new EtcdV3Refusal(RESOURCE_EXHAUSTED, `limit of ${most} requests in one body reached`);

/** A limit of this server is reached. */
export const overloaded = (why: string): EtcdV3Refusal => new EtcdV3Refusal(UNAVAILABLE, why);
