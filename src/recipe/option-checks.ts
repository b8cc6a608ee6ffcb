import { checkLength, checkWellFormed, show, warnOfMilliseconds } from '../base/checks.ts';
import type { LockClient } from './client.ts';
import { defaultMargin } from './lease.ts';
import type { LockStore } from './store.ts';

export const LONGEST_TTL = 2 ** 31;

/**
 * Returns the store of a client.
 * @param user the class that needs the client, for the message
 * @throws {TypeError} unless the value has a store; the message shows the value, but never a string: a URL may contain a password
 */
export function storeOf(user: string, client: LockClient): LockStore {
  const store = (client as Partial<LockClient> | null | undefined)?.store;
  if (typeof store?.queue === 'function') return store;
  const shown = typeof client === 'string' ? 'a string' : show(client);
  throw new TypeError(`${user} needs a client such as new EtcdClient() as its first argument, got ${shown}`);
}

/** @throws {TypeError | RangeError} unless the value is a well-formed string of 1 to `longest` bytes; the message shows it */
export function checkName(what: string, value: unknown, longest: number): asserts value is string {
  if (typeof value !== 'string') throw new TypeError(`${what} must be a string, got ${show(value)}`);
  if (value === '') throw new RangeError(`${what} must not be empty, got ${show(value)}`);
  checkWellFormed(what, value);
  checkLength(what, value, longest);
}

/**
 * Warns if the TTL looks like milliseconds; see {@link warnOfMilliseconds}.
 * @param orElse text for the message: which other values are allowed
 * @throws {RangeError} unless the TTL is a valid number of seconds; the message shows the value
 */
export function checkTtl(what: string, ttl: unknown, orElse = ''): void {
  if (!Number.isInteger(ttl) || (ttl as number) < 1 || (ttl as number) > LONGEST_TTL)
    throw new RangeError(
      `${what} must be an integer number of seconds from 1 to ${LONGEST_TTL}${orElse}, got ${show(ttl)}`,
    );
  warnOfMilliseconds(what, ttl as number);
}

/** @throws {RangeError} unless the margin is less than the TTL; the message shows both */
export function checkMargin(what: string, ttl: number, margin = defaultMargin(ttl)): void {
  if (margin >= ttl) throw new RangeError(`margin must be less than ${what} ${ttl}, got ${show(margin)}`);
}

/** @throws {TypeError} unless the signal is an `AbortSignal` or undefined; the message shows the value */
export function checkSignal(signal: unknown): void {
  if (signal !== undefined && !(signal instanceof AbortSignal))
    throw new TypeError(`signal must be an AbortSignal, got ${show(signal)}`);
}
