/** Argument checks that every `KeysApi` makes before it does anything. */

import { checkInteger, checkSeconds, show } from '../checks.ts';
import type { Conditions, CreateOptions, DeleteOptions, RenewOptions, SetOptions, WatchOptions } from './keys-api.ts';
import { checkKey } from './paths.ts';

/** Default timeout of a watch, in seconds. Without a timeout, a watch on a half-open connection would never end. */
export const LONGEST_WAIT = 20;

/** Whether a write or removal is conditional. */
export const isConditional = ({
  prevValue,
  prevIndex,
}: {
  readonly prevValue?: unknown;
  readonly prevIndex?: unknown;
}): boolean => prevValue !== undefined || prevIndex !== undefined;

export function checkGet(key: string): void {
  checkAnyKey(key);
}

export function checkSet(key: string, value: string | undefined, options: SetOptions): void {
  const { ttl, refresh, dir } = options;
  checkAnyKey(key);
  checkTtl(ttl, 0);
  checkConditions(options);
  if (refresh && (value !== undefined || typeof ttl !== 'number'))
    throw new RangeError(`refresh needs a ttl and no value, got ttl ${show(ttl)} and value ${show(value)}`);
  if (dir) checkNoValue(value);
}

export function checkCreateInOrder(dir: string, value: string | undefined, options: CreateOptions): void {
  checkAnyKey(dir);
  checkTtl(options.ttl, 0);
  if (options.dir) checkNoValue(value);
}

export function checkRenew(key: string, { prevValue, prevIndex, ttl, timeout }: RenewOptions): void {
  checkAnyKey(key);
  checkTtl(ttl, 1);
  if (timeout !== undefined) checkSeconds('timeout', timeout);
  checkConditions({ prevValue, prevIndex });
}

export function checkDelete(key: string, options: DeleteOptions): void {
  checkAnyKey(key);
  checkConditions(options);
}

export function checkWatch(key: string, { after, timeout }: WatchOptions): void {
  checkAnyKey(key);
  if (after !== undefined) checkInteger('after', after, 0);
  if (timeout !== undefined && timeout !== Number.POSITIVE_INFINITY) checkSeconds('timeout', timeout);
}

function checkAnyKey(key: string): void {
  if (key !== '/') checkKey('key', key);
}

function checkTtl(ttl: number | null | undefined, min: number): void {
  if (ttl !== undefined && ttl !== null) checkInteger('ttl', ttl, min);
}

function checkConditions({ prevValue, prevIndex }: Conditions): void {
  if (prevValue === '')
    throw new RangeError('prevValue must not be empty, because etcd refuses that: use prevIndex instead');
  // etcd ignores a prevIndex of 0.
  if (prevIndex !== undefined) checkInteger('prevIndex', prevIndex, 1);
}

function checkNoValue(value: string | undefined): void {
  if (value !== undefined) throw new RangeError(`a directory has no value, got ${show(value)}`);
}
