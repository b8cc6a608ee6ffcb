import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { show } from '../../../src/base/checks.ts';
import { printable } from '../../../src/base/printable.ts';
import { HARMLESS, HOSTILE, unprintableIn } from '../../support/hostile.ts';

/** Any strings, including lone surrogates and rare characters. */
const texts = fc.string({
  unit: fc.oneof(fc.string({ unit: 'binary', maxLength: 1 }), fc.constantFrom(...loneOnes())),
});

describe('printable text', () => {
  test.each(Object.entries(HOSTILE))('escapes text that %s', (_, text) => {
    expect(unprintableIn(text)).not.toEqual([]);
    expect(unprintableIn(printable(text))).toEqual([]);
    expect(JSON.parse(`"${printable(text)}"`)).toBe(text);
  });

  test.each([
    ['\u001b', String.raw`\u001b`],
    ['\u009b', String.raw`\u009b`],
    ['\n', String.raw`\u000a`],
    ['\u202e', String.raw`\u202e`],
    ['\u{e0041}', String.raw`\udb40\udc41`],
    ['\ud800', String.raw`\ud800`],
    ['a\udfffb', String.raw`a\udfffb`],
  ])('shows %j as %s', (text, shown) => {
    expect(printable(text)).toBe(shown);
  });

  test('leaves other characters unchanged', () => {
    expect(printable(HARMLESS)).toBe(HARMLESS);
  });

  test('has no unprintable character, and does not change if escaped again', () => {
    fc.assert(
      fc.property(texts, (text) => {
        const shown = printable(text);
        expect(unprintableIn(shown)).toEqual([]);
        expect(printable(shown)).toBe(shown);
      }),
    );
  });

  test('keeps the meaning of JSON', () => {
    fc.assert(
      fc.property(texts, (text) => {
        expect(JSON.parse(printable(JSON.stringify({ [text]: text })))).toEqual({ [text]: text });
      }),
    );
  });
});

test.each<[unknown, string]>([
  ...Object.values(HOSTILE).map((text): [string, string] => [text, printable(JSON.stringify(text))]),
  ['\u009b', String.raw`"\u009b"`],
  ['\n', String.raw`"\n"`],
  [HARMLESS, JSON.stringify(HARMLESS)],
  [{ [Symbol.toStringTag]: 'a\u001b[2J' }, String.raw`[object a\u001b[2J]`],
  [Symbol('a\u202e'), String.raw`Symbol(a\u202e)`],
  [() => 'source\n', '[object Function]'],
])('an error message shows %j as one printable line', (value, shown) => {
  expect(unprintableIn(show(value))).toEqual([]);
  expect(show(value)).toBe(shown);
});

function loneOnes(): string[] {
  return ['\ud800', '\udbff', '\udc00', '\udfff', ...Object.values(HOSTILE)];
}
