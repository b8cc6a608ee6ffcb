import { expect } from 'vitest';

/** Texts that anyone can write into a queue, by what each does when printed unescaped. */
export const HOSTILE: Readonly<Record<string, string>> = {
  'clears the screen': 'a\u001b[2Jb',
  'sets the clipboard': 'a\u001b]52;c;cm0gLXJm\u0007b',
  'begins a line': 'a\netcd-v2-lock: all is well',
  'overwrites the line': 'a\rb',
  'has a NUL and a DEL': 'a\u0000\u007fb',
  'is an escape sequence of C1': 'a\u009b31m\u0085b',
  'reverses the text': 'a\u202egnp\u202c\u2066b\u2069\u200e\u200f\u061c',
  'hides in the text': 'a\u200b\u00ad\u2060\ufeff\u200db',
  'separates lines and paragraphs': 'a\u2028b\u2029c',
  'is a tag beyond U+FFFF': 'a\u{e0001}\u{e0041}b',
  'is reserved for characters that nobody sees': 'a\u2065\ufff0\u{e0002}\u{e0fff}b',
};

/** Letters of other scripts, marks and symbols: they are printed unchanged. */
export const HARMLESS = 'umläut, e\u0301, 中文, ελληνικά, عربي, 🎉 ✔ "quoted" \\ back';

/** Code points instead of the source's pattern, so that the test does not share what it tests. */
const RANGES: readonly (readonly [from: number, to: number])[] = [
  [0x00, 0x1f],
  [0x7f, 0x9f],
  [0xad, 0xad],
  [0x61c, 0x61c],
  [0x200b, 0x200f],
  [0x2028, 0x202e],
  [0x2060, 0x206f],
  [0xd800, 0xdfff],
  [0xfeff, 0xfeff],
  [0xfff0, 0xfffb],
  [0xe0000, 0xe00ff],
  [0xe01f0, 0xe0fff],
];

/** Returns the characters in the text that must not be printed unescaped, as `U+` code points. */
export const unprintableIn = (text: string): string[] =>
  [...text]
    .map((character) => character.codePointAt(0) ?? 0)
    .filter((code) => RANGES.some(([from, to]) => from <= code && code <= to))
    .map((code) => `U+${code.toString(16)}`);

/** Expects no unprintable characters, and that each line matches `begin`. */
export function expectPrintable(text: string, begin = /^/): void {
  const lines = text.replace(/\n$/, '').split('\n');
  expect(unprintableIn(lines.join('')), text).toEqual([]);
  for (const line of text === '' ? [] : lines) expect(line).toMatch(begin);
}
