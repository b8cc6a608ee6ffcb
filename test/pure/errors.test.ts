import { inspect } from 'node:util';
import { expect, test } from 'vitest';
import * as errors from '../../src/errors.ts';
import { holderOf } from '../../src/recipe/entries/holder.ts';
import { fromErrorCode } from '../../src/v2/error-codes.ts';

const { EtcdException, EtcdKeyError, EtcdValueError, EtcdConnectionFailed } = errors;

/** Class name, code, direct base class. The codes are public: a change would break users. */
const classes: [keyof typeof errors, string, new (...args: never[]) => Error][] = [
  ['EtcdException', 'ETCD_EXCEPTION', Error],
  ['EtcdKeyError', 'ETCD_KEY_ERROR', EtcdException],
  ['EtcdKeyNotFound', 'ETCD_KEY_NOT_FOUND', EtcdKeyError],
  ['EtcdNotFile', 'ETCD_NOT_FILE', EtcdKeyError],
  ['EtcdNotDir', 'ETCD_NOT_DIR', EtcdKeyError],
  ['EtcdAlreadyExist', 'ETCD_ALREADY_EXIST', EtcdKeyError],
  ['EtcdRootReadOnly', 'ETCD_ROOT_READ_ONLY', EtcdKeyError],
  ['EtcdValueError', 'ETCD_VALUE_ERROR', EtcdException],
  ['EtcdCompareFailed', 'ETCD_COMPARE_FAILED', EtcdValueError],
  ['EtcdDirNotEmpty', 'ETCD_DIR_NOT_EMPTY', EtcdValueError],
  ['EtcdInsufficientPermissions', 'ETCD_INSUFFICIENT_PERMISSIONS', EtcdException],
  ['EtcdLeaderElectionInProgress', 'ETCD_LEADER_ELECTION_IN_PROGRESS', EtcdException],
  ['EtcdWatcherCleared', 'ETCD_WATCHER_CLEARED', EtcdException],
  ['EtcdEventIndexCleared', 'ETCD_EVENT_INDEX_CLEARED', EtcdException],
  ['EtcdConnectionFailed', 'ETCD_CONNECTION_FAILED', EtcdException],
  ['EtcdLockTimeout', 'ETCD_WATCH_TIMED_OUT', EtcdException],
  ['EtcdTlsFailed', 'ETCD_TLS_FAILED', EtcdConnectionFailed],
  ['EtcdClientClosed', 'ETCD_CLIENT_CLOSED', EtcdException],
  ['EtcdUnusableAnswer', 'ETCD_UNUSABLE_ANSWER', EtcdException],
  ['EtcdClusterIdChanged', 'ETCD_CLUSTER_ID_CHANGED', EtcdException],
  ['EtcdKeysLeft', 'ETCD_KEYS_LEFT', EtcdException],
  ['EtcdLockExpired', 'ETCD_LOCK_EXPIRED', EtcdException],
  ['EtcdLockHeld', 'ETCD_LOCK_HELD', EtcdException],
  ['EtcdLockLimitDiffers', 'ETCD_LOCK_LIMIT_DIFFERS', EtcdException],
  ['EtcdLockReleased', 'ETCD_LOCK_RELEASED', EtcdException],
  ['EtcdLockLost', 'ETCD_LOCK_LOST', EtcdException],
  ['EtcdStaleToken', 'ETCD_STALE_TOKEN', EtcdException],
];

const byName = new Map<string, unknown>(Object.entries(errors));

test('the table above has every exported error class', () => {
  const made = [...byName].filter(([, value]) => value === EtcdException || isSubclass(value));
  expect(made.map(([name]) => name).sort()).toEqual(classes.map(([name]) => name).sort());
});

test('no two classes share a code', () => {
  expect(new Set(classes.map(([, code]) => code)).size).toBe(classes.length);
});

test.each(classes)('%s has its name and the code %s', (className, code, base) => {
  const error = make(className);
  // The only class with another name than its errors, for programs that compare that.
  const name = className === 'EtcdLockTimeout' ? 'EtcdWatchTimedOut' : className;
  expect(error.constructor.name).toBe(className);
  expect(error).toMatchObject({ name, code, message: 'why' });
  expect(Object.getPrototypeOf(error.constructor)).toBe(base);
  expect(error).toBeInstanceOf(EtcdException);
  expect(String(error)).toBe(`${name}: why`);
  expect(inspect(error)).toMatch(new RegExp(`^${name}: why\n`));
});

test('an error without fields has defaults', () => {
  const error = new EtcdException('why');
  expect(error).toMatchObject({ errorCode: undefined, index: undefined, httpStatus: undefined, outcomeUnknown: false });
  expect(error.failures).toEqual([]);
  expect('cause' in error).toBe(false);
});

test.each(classes)('a logged %s shows no field that is not known', (name) => {
  expect(inspect(make(name))).not.toMatch(/undefined/);
});

test('a logged error shows what is known of etcd and of the holder', () => {
  expect(inspect(new EtcdException('why', { errorCode: 300 }))).toMatch(/\berrorCode: 300\b/);
  const holder = holderOf('/_locks/x', { key: '/_locks/x/1', value: 'u1', ttl: undefined });
  const logged = inspect(new errors.EtcdLockTimeout('why', { reason: 'held', holder }));
  expect(logged).toContain("key: '/_locks/x/1'");
  expect(logged).not.toMatch(/undefined/);
});

test.each(classes)('%s has no field that web frameworks use for their own answer', (name) => {
  for (const field of ['status', 'statusCode', 'statusMessage', 'headers', 'expose'])
    expect(make(name)).not.toHaveProperty(field);
});

test('an error has the given fields', () => {
  const cause = new Error('the cause');
  const failures = [{ endpoint: 'http://a:2379', error: cause }];
  const fields = { errorCode: 300, index: 6, httpStatus: 500, outcomeUnknown: true, failures, cause };
  expect(new errors.EtcdConnectionFailed('why', fields)).toMatchObject(fields);
});

test('errors about a lock have the holder of the lock if it is known', () => {
  const holder = holderOf('/_locks/x', { key: '/_locks/x/1', value: 'u1', ttl: 5 });
  expect(new errors.EtcdLockTimeout('why', { reason: 'held', holder })).toMatchObject({ reason: 'held', holder });
  expect(new errors.EtcdLockExpired('why', { holder }).holder).toBe(holder);
  expect(new errors.EtcdLockExpired('why').holder).toBeUndefined();
  expect(new errors.EtcdLockHeld('why', { holder }).holder).toBe(holder);
  expect(new errors.EtcdLockLimitDiffers('why', { holder }).holder).toBe(holder);
});

test('the error for a stale token has that token and the highest one', () => {
  expect(new errors.EtcdStaleToken('why', { token: 3n, highest: 5n })).toMatchObject({ token: 3n, highest: 5n });
});

test('the error for leftover keys has the keys', () => {
  expect(new errors.EtcdKeysLeft('why', ['/a', '/b']).keys).toEqual(['/a', '/b']);
});

test('an unknown error code becomes an error of the base class', () => {
  const error = fromErrorCode(999, 'new in etcd', { httpStatus: 400 });
  expect(error.constructor).toBe(EtcdException);
  expect(error).toMatchObject({ errorCode: 999, httpStatus: 400, message: 'new in etcd' });
});

const transient = new Set<string>([
  'EtcdConnectionFailed',
  'EtcdLeaderElectionInProgress',
  'EtcdWatcherCleared',
  'EtcdEventIndexCleared',
]);

test.each(classes)('%s is transient only if the same call may succeed later', (name) => {
  expect(errors.isTransient(make(name))).toBe(transient.has(name));
});

test.each([
  [300, true],
  [301, true],
  [400, true],
  [401, true],
  [100, false],
  [101, false],
  [110, false],
  [200, false],
  [999, false],
])('etcd’s code %i is transient: %s', (code, transient) => {
  expect(errors.isTransient(fromErrorCode(code, 'why', {}))).toBe(transient);
});

test.each([new Error('x'), new TypeError('x'), new DOMException('x', 'AbortError'), undefined, null, 'x', 300])(
  'any other value is not transient: %s',
  (error) => {
    expect(errors.isTransient(error)).toBe(false);
  },
);

function isSubclass(value: unknown): boolean {
  return typeof value === 'function' && value.prototype instanceof EtcdException;
}

function make(name: keyof typeof errors): errors.EtcdException {
  if (name === 'EtcdKeysLeft') return new errors.EtcdKeysLeft('why', []);
  if (name === 'EtcdLockTimeout') return new errors.EtcdLockTimeout('why', { reason: 'held' });
  if (name === 'EtcdStaleToken') return new errors.EtcdStaleToken('why', { token: 1n, highest: 2n });
  const ErrorClass = byName.get(name) as typeof EtcdException;
  return new ErrorClass('why');
}
