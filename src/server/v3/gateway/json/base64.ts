import type { Bytes } from '../../bytes.ts';

const STANDARD = /[A-Za-z0-9+/]/;
const FOR_URLS = /[A-Za-z0-9_-]/;
const LINE_END = /[\r\n]/;

/** Decodes padded base64, or returns the offset of what is wrong. Line ends are ignored, as in Go. */
export function decodeBase64(text: string): { readonly bytes: Bytes } | { readonly badAt: number } {
  let digits = 0;
  for (let i = 0; i < text.length; i += 1) {
    const char = text.charAt(i);
    if (STANDARD.test(char)) digits += 1;
    else if (!LINE_END.test(char)) {
      const badAt = char === '=' ? badPadding(text, i, digits % 4) : i;
      return badAt === undefined ? { bytes: bytesOf(text) } : { badAt };
    }
  }
  return digits % 4 === 0 ? { bytes: bytesOf(text) } : { badAt: text.length - (digits % 4) };
}

/** Returns the offset of what is wrong with padding; undefined: nothing is. @param digits number of digits before it, in its group */
function badPadding(text: string, at: number, digits: number): number | undefined {
  if (digits < 2) return at;
  let next = behindLineEnds(text, at + 1);
  if (digits === 2) {
    if (next === text.length) return next;
    if (text[next] !== '=') return next - 1;
    next = behindLineEnds(text, next + 1);
  }
  return next < text.length ? next : undefined;
}

function behindLineEnds(text: string, at: number): number {
  let next = at;
  while (next < text.length && LINE_END.test(text.charAt(next))) next += 1;
  return next;
}

/** Decodes base64 as etcd 3.6 accepts it: also with the digits for URLs, and without padding. Returns undefined if it is not valid. */
export function decodeAnyBase64(text: string): Bytes | undefined {
  const plain = text.replace(/[\r\n]/g, '');
  const digits = /[-_]/.test(text) ? FOR_URLS : STANDARD;
  const body = text.length % 4 === 0 ? plain.replace(/={1,2}$/, '') : plain;
  if (text.length % 4 === 0 && plain.length % 4 !== 0) return undefined;
  if (body.length % 4 === 1 || [...body].some((char) => !digits.test(char))) return undefined;
  return bytesOf(body);
}

const bytesOf = (text: string): Bytes => Buffer.from(text, 'base64').toString('latin1');
