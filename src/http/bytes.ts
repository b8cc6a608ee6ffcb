/**
 * Converts bytes to strings and back. etcd stores keys and values as bytes, UTF-8 or not. Each byte that is not UTF-8 becomes a
 * lone surrogate, U+DC80 to U+DCFF, so that different bytes become different strings.
 */
import { isUtf8 } from 'node:buffer';

/** Matches a UTF-8 character, or a byte that does not begin one, in a string with one byte in each code unit. */
const CHARACTERS =
  /[^\x80-\xff]+|[\xc2-\xdf][\x80-\xbf]|\xe0[\xa0-\xbf][\x80-\xbf]|\xed[\x80-\x9f][\x80-\xbf]|[\xe1-\xec\xee\xef][\x80-\xbf]{2}|\xf0[\x90-\xbf][\x80-\xbf]{2}|\xf4[\x80-\x8f][\x80-\xbf]{2}|[\xf1-\xf3][\x80-\xbf]{3}|[\x80-\xff]/g;

const BYTE = /[\udc80-\udcff]/u;
const BYTES_OR_TEXT = /[\udc80-\udcff]|[^\udc80-\udcff]+/gu;

const byteOf = (char: string): number => char.charCodeAt(0) - 0xdc00;

/** Converts bytes to a string. @param bytes one byte in each code unit, as in Node's encoding `latin1` */
export const fromBytes = (bytes: string): string => textOf(Buffer.from(bytes, 'latin1'));

/** Converts bytes to a string. */
export function textOf(bytes: Buffer): string {
  if (isUtf8(bytes)) return bytes.toString();
  return bytes
    .toString('latin1')
    .replace(CHARACTERS, (part) =>
      part.length === 1 && part >= '\x80'
        ? String.fromCharCode(0xdc00 + part.charCodeAt(0))
        : Buffer.from(part, 'latin1').toString(),
    );
}

export function toBytes(text: string): Buffer {
  if (!hasBytes(text)) return Buffer.from(text);
  return Buffer.concat(
    (text.match(BYTES_OR_TEXT) ?? []).map((part) => (hasBytes(part) ? Buffer.of(byteOf(part)) : Buffer.from(part))),
  );
}

/** Whether the string stands for bytes that are not UTF-8. */
export const hasBytes = (text: string): boolean => BYTE.test(text);

/** Percent-encodes a URL's path as `encodeURI` does, and also every byte that is not UTF-8. */
export const encodePath = (text: string): string =>
  text.replace(BYTES_OR_TEXT, (part) =>
    hasBytes(part) ? `%${byteOf(part).toString(16).toUpperCase()}` : encodeURI(part),
  );

const ESCAPES = new Map([...'abtnvfr'].map((letter, i) => [String.fromCharCode(7 + i), `\\${letter}`]));

/** Quotes a string as Go's `%q` does, for characters up to U+FFFF. */
export const quote = (text: string): string => `"${[...text].map(quoted).join('')}"`;

function quoted(char: string): string {
  if (hasBytes(char)) return `\\x${byteOf(char).toString(16)}`;
  if (char === '"' || char === '\\') return `\\${char}`;
  if (/^[ \p{L}\p{M}\p{N}\p{P}\p{S}]$/u.test(char)) return char;
  const code = char.charCodeAt(0);
  const hex = code.toString(16);
  return ESCAPES.get(char) ?? (code < 0x80 ? `\\x${hex.padStart(2, '0')}` : `\\u${hex.padStart(4, '0')}`);
}
