import { printable } from './printable.ts';

/** Returns what a message shows of a value: its text in one printable line, so that the mistake can be seen. */
export const show = (value: unknown): string => printable(textOf(value));

function textOf(value: unknown): string {
  if (typeof value === 'string') return JSON.stringify(value.length > 100 ? `${value.slice(0, 100)}…` : value);
  if (typeof value === 'bigint') return `${value}n`;
  // Not a function's source, which may be long.
  const isOpaque = typeof value === 'function' || (typeof value === 'object' && value !== null);
  return isOpaque ? Object.prototype.toString.call(value) : String(value);
}

/** Half of a surrogate pair: such a string has no UTF-8 form. */
const LONE_SURROGATE = /\p{Surrogate}/u;

export const isWellFormed = (text: string): boolean => !LONE_SURROGATE.test(text);

/** @throws {RangeError} with the value in the message */
export function checkWellFormed(what: string, text: string): void {
  if (!isWellFormed(text)) throw new RangeError(`${what} must be well-formed Unicode, got ${show(text)}`);
}

/** Of a UTF-16 code unit in UTF-8. */
const MOST_BYTES = 3;

/** @throws {RangeError} with the value in the message when the text is longer than that in UTF-8 */
export function checkLength(what: string, text: string, most: number): void {
  if (text.length * MOST_BYTES <= most) return;
  const length = Buffer.byteLength(text);
  if (length > most) throw new RangeError(`${what} must have at most ${most} bytes, got ${length}: ${show(text)}`);
}

/** @throws {RangeError} with the value in the message, unless it is a number of seconds > 0 */
export function checkSeconds(what: string, value: unknown): void {
  if (typeof value === 'number' && value > 0 && Number.isFinite(value)) return;
  throw new RangeError(`${what} must be a number of seconds > 0, got ${show(value)}`);
}

/** @throws {RangeError} with the value in the message, unless it is a number of seconds ≥ 0 */
export function checkSecondsOrNone(what: string, value: unknown): void {
  if (typeof value === 'number' && value >= 0 && Number.isFinite(value)) return;
  throw new RangeError(`${what} must be a number of seconds ≥ 0, got ${show(value)}`);
}

/** @throws {RangeError} with the value in the message, unless it is an integer that is no less */
export function checkInteger(what: string, value: unknown, least: number): void {
  if (Number.isSafeInteger(value) && (value as number) >= least) return;
  throw new RangeError(`${what} must be an integer ≥ ${least}, got ${show(value)}`);
}
