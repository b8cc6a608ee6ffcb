import { checkLength, checkWellFormed, isWellFormed, show } from '../base/checks.ts';

/** python-etcd's directory of lock queues. */
export const DEFAULT_LOCK_PREFIX = '/_locks';

/** Number of digits in the name of an in-order key, since etcd 2.2. */
const SEQUENCE_DIGITS = 20;

/** In bytes. etcd closes a connection whose first request line has 4 KiB or more, and a percent-encoded byte takes three. */
const MAX_NAME_LENGTH = 750;

/**
 * Refuses a key that etcd would normalize to another key, so that it could not be found under its own name.
 * @throws {TypeError} if the key is not a string
 * @throws {RangeError} if the key is invalid; the message shows it
 */
export function checkKey(what: string, key: unknown): asserts key is string {
  if (typeof key !== 'string') throw new TypeError(`${what} must be a string, got ${show(key)}`);
  if (!key.startsWith('/')) throw new RangeError(`${what} must begin with "/", got ${show(key)}`);
  checkSegments(what, key, key.slice(1));
}

/**
 * Refuses a lock name that etcd would normalize to another name, or that is too long.
 * @throws {TypeError} if the name is not a string
 * @throws {RangeError} if the name is invalid; the message shows it
 */
export function checkLockName(name: unknown): asserts name is string {
  if (typeof name !== 'string') throw new TypeError(`lock name must be a string, got ${show(name)}`);
  checkSegments('lock name', name, name);
  checkLength('lock name', name, MAX_NAME_LENGTH);
}

/** Whether {@link checkLockName} accepts this name. */
export function isLockName(name: string): boolean {
  try {
    checkLockName(name);
    return true;
  } catch {
    return false;
  }
}

/** Whether a listing of all locks includes this one: etcd hides names with a part that begins with "_". */
export const isListed = (name: string): boolean => !`/${name}`.includes('/_');

/** Most keys are like this. They need no check of each segment. */
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

/** Whether a key is directly in this directory and has a valid name. */
export function isChild(key: string, dir: string): boolean {
  const start = dir === '/' ? 1 : dir.length + 1;
  if (!key.startsWith(dir) || key[start - 1] !== '/') return false;
  const name = key.slice(start);
  if (PLAIN_NAME.test(name)) return true;
  return name !== '' && name !== '.' && name !== '..' && !name.includes('/') && isWellFormed(name);
}

/** Whether a key is below this directory, at any depth. */
export const isBelow = (key: string, dir: string): boolean => key.startsWith(dir === '/' ? dir : `${dir}/`);

/** Returns the last segment of a key. */
export const baseName = (key: string): string => key.slice(key.lastIndexOf('/') + 1);

/** Returns the sequence number of an in-order key; undefined if its name is not a number. */
export function sequenceOf(key: string): bigint | undefined {
  const name = baseName(key);
  return /^\d+$/.test(name) ? BigInt(name) : undefined;
}

/** Whether the name of an in-order key has the width that etcd uses since 2.2, so that text order is number order. */
export const hasFullWidth = (key: string): boolean => baseName(key).length === SEQUENCE_DIGITS;
