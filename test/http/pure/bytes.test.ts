import fc from 'fast-check';
import { expect, test } from 'vitest';
import { encodePath, fromBytes, toBytes } from '../../../src/http/bytes.ts';

const latin1 = (bytes: Uint8Array): string => Buffer.from(bytes).toString('latin1');

/** Mostly bytes that are almost UTF-8. */
const bytes = fc
  .array(
    fc.oneof(
      fc.uint8Array({ maxLength: 4 }),
      fc.string({ unit: 'grapheme', maxLength: 3 }).map((text) => Buffer.from(text)),
      fc
        .constantFrom('eda080', 'edbfbf', 'f0808080', 'f4908080', 'e0809f', 'c080', 'efbfbd', 'f09f98')
        .map((hex) => Buffer.from(hex, 'hex')),
    ),
    { maxLength: 5 },
  )
  .map((parts) => Buffer.concat(parts));

test('bytes survive the conversion to a string and back', () => {
  fc.assert(
    fc.property(bytes, (raw) => {
      expect(toBytes(fromBytes(latin1(raw))).toString('hex')).toBe(raw.toString('hex'));
    }),
    { numRuns: 2000 },
  );
});

test('UTF-8 becomes its string, and only other bytes become surrogates', () => {
  fc.assert(
    fc.property(bytes, (raw) => {
      const text = fromBytes(latin1(raw));
      expect(/\p{Surrogate}/u.test(text)).toBe(!Buffer.from(raw.toString()).equals(raw));
      if (!/\p{Surrogate}/u.test(text)) expect(text).toBe(raw.toString());
    }),
    { numRuns: 2000 },
  );
});

test('a percent-encoded path decodes to the same bytes', () => {
  fc.assert(
    fc.property(bytes, (raw) => {
      const encoded = encodePath(fromBytes(latin1(raw)));
      expect(encoded).toMatch(/^[!-~]*$/);
      const decoded = encoded.replace(/%(..)/g, (_, hex) => String.fromCharCode(Number.parseInt(hex, 16)));
      expect(decoded).toBe(latin1(raw));
    }),
    { numRuns: 2000 },
  );
});
