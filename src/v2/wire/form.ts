import { fromBytes, quote } from '../../http/bytes.ts';
import { etcdError } from '../error-codes.ts';

/** Fields of a query or a form by name. If a name occurs several times, the first one counts. */
export type Fields = ReadonlyMap<string, string>;

/** Index in etcd's errors about a request that it cannot parse. */
const NO_INDEX = 0;

export const refusedRequest = (errorCode: number, cause: string) => etcdError(errorCode, cause, NO_INDEX);

/**
 * Parses URL-encoded texts as Go does. Fields of an earlier text take precedence.
 * @param texts with one byte in each code unit
 * @throws {EtcdValueError} code 210, with etcd's text
 */
export function parseFields(...texts: readonly string[]): Fields {
  const fields = new Map<string, string>();
  for (const text of texts) {
    if (text.includes(';')) throw refusedRequest(210, 'invalid semicolon separator in query');
    for (const pair of text.split('&')) {
      if (pair === '') continue;
      const end = pair.indexOf('=');
      const name = decodeField(end < 0 ? pair : pair.slice(0, end));
      const value = decodeField(end < 0 ? '' : pair.slice(end + 1));
      if (!fields.has(name)) fields.set(name, value);
    }
  }
  return fields;
}

function decodeField(text: string): string {
  const bad = badEscape(text);
  if (bad !== undefined) throw refusedRequest(210, `invalid URL escape ${quote(fromBytes(bad))}`);
  return unescapeBytes(text.replaceAll('+', ' '));
}

/** Returns the first `%` that does not begin an escape, with the two bytes after it. */
export const badEscape = (text: string): string | undefined => /%(?![0-9a-f]{2}).{0,2}/is.exec(text)?.[0];

/** Percent-decodes a text. Unlike `decodeURIComponent`, accepts bytes that are not UTF-8; see {@link fromBytes}. */
export const unescapeBytes = (text: string): string =>
  /[%\x80-\xff]/.test(text)
    ? fromBytes(text.replace(/%([0-9a-f]{2})/gi, (_, hex) => String.fromCharCode(Number.parseInt(hex, 16))))
    : text;

/**
 * Parses a decimal number up to 2^64 - 1. Returns a bigint if a number would not be exact, 0 if the field is absent, and
 * undefined for anything else.
 */
export function parseNumber(fields: Fields, name: string): number | bigint | undefined {
  const text = fields.get(name);
  if (text === undefined) return 0;
  if (!/^0*\d{1,20}$/.test(text)) return undefined;
  const exact = BigInt(text);
  if (exact >= 2n ** 64n) return undefined;
  return exact <= Number.MAX_SAFE_INTEGER ? Number(exact) : exact;
}

const BOOLEANS: ReadonlyMap<string, boolean> = new Map([
  ...['1', 't', 'T', 'TRUE', 'true', 'True'].map((text) => [text, true] as const),
  ...['0', 'f', 'F', 'FALSE', 'false', 'False'].map((text) => [text, false] as const),
]);

/** Parses a boolean in any spelling that Go accepts. Returns undefined for anything else. */
export const parseBoolean = (text: string): boolean | undefined => BOOLEANS.get(text);

type Field = string | number | boolean | null | undefined;

/** URL-encodes the fields that are not undefined or false; null becomes an empty string. */
export function params(fields: Record<string, Field>): string {
  let text = '';
  for (const name in fields) {
    const value = fields[name];
    if (value !== undefined && value !== false) text += `${text && '&'}${name}=${encode(String(value ?? ''))}`;
  }
  return text;
}

/** Most values are like this and need no URL encoding. */
const PLAIN = /^[\w.-]*$/;

const encode = (text: string): string =>
  PLAIN.test(text) ? text : new URLSearchParams([['', text]]).toString().slice(1);
