import { printable } from './printable.ts';

/** Returns a value as one printable line for an error message. Long strings are cut off. */
export const show = (value: unknown): string => printable(textOf(value));

function textOf(value: unknown): string {
  if (typeof value === 'string') return JSON.stringify(value.length > 100 ? `${value.slice(0, 100)}…` : value);
  if (typeof value === 'bigint') return `${value}n`;
  // Functions and objects are shown by type only: their text may be long.
  const isOpaque = typeof value === 'function' || (typeof value === 'object' && value !== null);
  return isOpaque ? Object.prototype.toString.call(value) : String(value);
}

/** Half of a surrogate pair without the other half. UTF-8 cannot encode it. */
const LONE_SURROGATE = /\p{Surrogate}/u;

export const isWellFormed = (text: string): boolean => !LONE_SURROGATE.test(text);

/** @throws {RangeError} if the text contains a lone surrogate; the message shows the text */
export function checkWellFormed(what: string, text: string): void {
  if (!isWellFormed(text)) throw new RangeError(`${what} must be well-formed Unicode, got ${show(text)}`);
}

/** Maximum number of UTF-8 bytes for one UTF-16 code unit. */
const MAX_BYTES_PER_UNIT = 3;

/** @throws {RangeError} if the text has more than `max` bytes in UTF-8; the message shows the text */
export function checkLength(what: string, text: string, max: number): void {
  if (text.length * MAX_BYTES_PER_UNIT <= max) return;
  const length = Buffer.byteLength(text);
  if (length > max) throw new RangeError(`${what} must have at most ${max} bytes, got ${length}: ${show(text)}`);
}

/**
 * Warns if the value looks like milliseconds; see {@link warnOfMilliseconds}.
 * @throws {RangeError} unless the value is a number of seconds > 0; the message shows the value
 */
export function checkSeconds(what: string, value: unknown): void {
  if (typeof value !== 'number' || !(value > 0 && Number.isFinite(value)))
    throw new RangeError(`${what} must be a number of seconds > 0, got ${show(value)}`);
  warnOfMilliseconds(what, value);
}

/**
 * Warns if the value looks like milliseconds; see {@link warnOfMilliseconds}.
 * @throws {RangeError} unless the value is a number of seconds ≥ 0; the message shows the value
 */
export function checkSecondsOrNone(what: string, value: unknown): void {
  if (typeof value !== 'number' || !(value >= 0 && Number.isFinite(value)))
    throw new RangeError(`${what} must be a number of seconds ≥ 0, got ${show(value)}`);
  warnOfMilliseconds(what, value);
}

/** @throws {RangeError} unless the value is an integer ≥ `min`; the message shows the value */
export function checkInteger(what: string, value: unknown, min: number): void {
  if (Number.isSafeInteger(value) && (value as number) >= min) return;
  throw new RangeError(`${what} must be an integer ≥ ${min}, got ${show(value)}`);
}

/** @throws {TypeError} unless the flag is a boolean; the message shows its name and value */
export function checkBoolean(name: string, flag: unknown): void {
  if (typeof flag !== 'boolean') throw new TypeError(`${name} must be a boolean, got ${show(flag)}`);
}

const HOUR = 3600;
const DAY = 24 * HOUR;

/** Options for which the warning has been emitted. */
const warned = new Set<string>();

/**
 * Emits a warning if a number of seconds looks like milliseconds: more than an hour and a multiple of 1000, but not whole hours
 * up to a day. Warns once per option. Node's flag `--disable-warning=ETCD_LOCK_MILLISECONDS` turns the warning off.
 */
export function warnOfMilliseconds(option: string, seconds: number): void {
  if (seconds <= HOUR || !looksLikeMilliseconds(seconds) || warned.has(option)) return;
  warned.add(option);
  const hours = (seconds / HOUR).toFixed(1);
  process.emitWarning(`${option} is in seconds: ${seconds} is ${hours} hours; did you mean ${seconds / 1000}?`, {
    code: 'ETCD_LOCK_MILLISECONDS',
    detail: `If ${seconds} seconds are right, run Node with --disable-warning=ETCD_LOCK_MILLISECONDS.`,
  });
}

const looksLikeMilliseconds = (seconds: number): boolean =>
  seconds % 1000 === 0 && !(seconds % HOUR === 0 && seconds <= DAY);
