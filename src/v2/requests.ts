/** Argument checks that every `KeysApi` makes before it does anything. */

import { checkInteger, checkSeconds, show } from '../base/checks.ts';
import { checkOptionNames, type OptionNames } from '../base/option-names.ts';
import type {
  Conditions,
  CreateOptions,
  DeleteOptions,
  GetOptions,
  KeysCall,
  RenewOptions,
  SetOptions,
  WatchOptions,
} from './keys-api.ts';
import { checkKey } from './paths.ts';

const CALL = { signal: true, attemptTimeout: true, background: true } satisfies OptionNames<KeysCall>;
const CONDITIONS = { prevValue: true, prevIndex: true } satisfies OptionNames<Conditions>;
const GET = { ...CALL, recursive: true, sorted: true, quorum: true } satisfies OptionNames<GetOptions>;
const SET = {
  ...CALL,
  ...CONDITIONS,
  ttl: true,
  prevExist: true,
  refresh: true,
  dir: true,
} satisfies OptionNames<SetOptions>;
const CREATE = { ...CALL, ttl: true, dir: true, listing: true } satisfies OptionNames<CreateOptions>;
const RENEW = { ...CALL, ...CONDITIONS, ttl: true, timeout: true } satisfies OptionNames<RenewOptions>;
const DELETE = { ...CALL, ...CONDITIONS, dir: true, recursive: true } satisfies OptionNames<DeleteOptions>;
const WATCH = {
  ...CALL,
  after: true,
  recursive: true,
  timeout: true,
  started: true,
} satisfies OptionNames<WatchOptions>;

/** Default timeout of a watch, in seconds. Without a timeout, a watch on a half-open connection would never end. */
export const LONGEST_WAIT = 20;

/** Whether a write or removal has `prevValue` or `prevIndex`. `prevExist` does not count. */
export const isConditional = ({
  prevValue,
  prevIndex,
}: {
  readonly prevValue?: unknown;
  readonly prevIndex?: unknown;
}): boolean => prevValue !== undefined || prevIndex !== undefined;

export function checkCall(options: KeysCall): void {
  checkOptionNames(options, CALL);
}

export function checkGet(key: string, options: GetOptions): void {
  checkOptionNames(options, GET);
  checkAnyKey(key);
}

export function checkSet(key: string, value: string | undefined, options: SetOptions): void {
  checkOptionNames(options, SET);
  const { ttl, refresh, dir } = options;
  checkAnyKey(key);
  checkTtl(ttl, 0);
  checkConditions(options);
  if (refresh && (value !== undefined || typeof ttl !== 'number'))
    throw new RangeError(`refresh needs a ttl and no value, got ttl ${show(ttl)} and value ${show(value)}`);
  if (dir) checkNoValue(value);
}

export function checkCreateInOrder(dir: string, value: string | undefined, options: CreateOptions): void {
  checkOptionNames(options, CREATE);
  checkAnyKey(dir);
  checkTtl(options.ttl, 0);
  if (options.dir) checkNoValue(value);
}

export function checkRenew(key: string, options: RenewOptions): void {
  checkOptionNames(options, RENEW);
  const { prevValue, prevIndex, ttl, timeout } = options;
  checkAnyKey(key);
  checkTtl(ttl, 1);
  if (timeout !== undefined) checkSeconds('timeout', timeout);
  checkConditions({ prevValue, prevIndex });
}

export function checkDelete(key: string, options: DeleteOptions): void {
  checkOptionNames(options, DELETE);
  checkAnyKey(key);
  checkConditions(options);
}

export function checkWatch(key: string, options: WatchOptions): void {
  checkOptionNames(options, WATCH);
  const { after, timeout } = options;
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
