import { checkLength, checkWellFormed, isWellFormed, show } from '../checks.ts';

/** Where python-etcd keeps its locks. */
export const DEFAULT_LOCK_PREFIX = '/_locks';

/** Digits of an in-order name since etcd 2.2. */
const SEQUENCE_DIGITS = 20;

/** etcd cuts connections off whose first request has a line of 4 KiB or more; escaped, a byte may take three. */
const LONGEST_NAME = 750;

/**
 * Refuses a key that etcd would clean into another one (it would then not be found again under its own name).
 * @throws {TypeError} when it is no string
 * @throws {RangeError} with the value in the message
 */
export function checkKey(what: string, key: unknown): asserts key is string {
  if (typeof key !== 'string') throw new TypeError(`${what} must be a string, got ${show(key)}`);
  if (!key.startsWith('/')) throw new RangeError(`${what} must begin with "/", got ${show(key)}`);
  checkSegments(what, key, key.slice(1));
}

/**
 * Refuses a lock name that etcd would clean into another one.
 * @throws {TypeError} when it is no string
 * @throws {RangeError} with the value in the message
 */
export function checkLockName(name: unknown): asserts name is string {
  if (typeof name !== 'string') throw new TypeError(`lock name must be a string, got ${show(name)}`);
  checkSegments('lock name', name, name);
  checkLength('lock name', name, LONGEST_NAME);
}

/** What most keys look like, and can be told without taking them apart. */
const PLAIN = /^[\w-]+(?:\/[\w-]+)*$/;
const PLAIN_NAME = /^[\w-]+$/;

function checkSegments(what: string, whole: string, path: string): void {
  if (PLAIN.test(path)) return;
  const bad = path.split('/').find((segment) => segment === '' || segment === '.' || segment === '..');
  if (bad !== undefined) {
    const why = path === '' ? 'must not be empty' : 'must have no empty, "." or ".." segment';
    throw new RangeError(`${what} ${why}, got ${show(whole)}`);
  }
  checkWellFormed(what, whole);
}

/** Whether a key lies directly in that directory, under a name that a key may have. */
export function isChild(key: string, dir: string): boolean {
  const start = dir === '/' ? 1 : dir.length + 1;
  if (!key.startsWith(dir) || key[start - 1] !== '/') return false;
  const name = key.slice(start);
  if (PLAIN_NAME.test(name)) return true;
  return name !== '' && name !== '.' && name !== '..' && !name.includes('/') && isWellFormed(name);
}

/** Whether a key lies below that directory, however deep. */
export const isBelow = (key: string, dir: string): boolean => key.startsWith(dir === '/' ? dir : `${dir}/`);

/** The last segment of a key. */
export const baseName = (key: string): string => key.slice(key.lastIndexOf('/') + 1);

/** The number an in-order name stands for; undefined when the name is no number. */
export function sequenceOf(key: string): bigint | undefined {
  const name = baseName(key);
  return /^\d+$/.test(name) ? BigInt(name) : undefined;
}

/** Whether an in-order name has the width etcd gives it since 2.2, so that text order and number order agree. */
export const hasFullWidth = (key: string): boolean => baseName(key).length === SEQUENCE_DIGITS;
