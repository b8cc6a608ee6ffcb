import fc from 'fast-check';
import { afterEach, expect, test, vi } from 'vitest';
import { Lines, table } from '../../../src/cli/table.ts';

afterEach(() => void vi.unstubAllEnvs());

const text = (line: ReturnType<typeof table>[number]): string =>
  typeof line === 'string' ? line : line.map((piece) => (typeof piece === 'string' ? piece : piece.text)).join('');

interface Row {
  readonly long: string;
  readonly short: string;
}

const COLUMNS = [
  { heading: 'LONG', about: 'may be truncated', cell: ({ long }: Row) => long, yields: 1, keeps: 'end' },
  { heading: 'SHORT', about: 'is always complete', cell: ({ short }: Row) => short },
] as const;

const shown = (width: string, rows: readonly Row[]): string[] => {
  vi.stubEnv('COLUMNS', width);
  return table(COLUMNS, rows).map(text);
};

test('a truncated column keeps the end if it is set to, and never splits a character', () => {
  const rows = [{ long: `${'a'.repeat(20)}😀${'b'.repeat(10)}`, short: 'x' }];
  expect(shown('19', rows)).toEqual(['LONG          SHORT', '…😀bbbbbbbbbb  x']);
  expect(shown('20', rows)).toEqual(['LONG           SHORT', '…a😀bbbbbbbbbb  x']);
});

test('a column that cannot be truncated any more is left out', () => {
  const rows = [{ long: 'a'.repeat(40), short: 'complete' }];
  expect(shown('21', rows)).toEqual(['SHORT', 'complete']);
});

test.each(['0', '-5', 'wide', ''])('COLUMNS=%j is no width', (width) => {
  const rows = [{ long: 'a'.repeat(300), short: 'x' }];
  expect(shown(width, rows)[1]).toBe(`${'a'.repeat(300)}  x`);
});

test('a column that is to be truncated last is complete until all others are left out', () => {
  const columns = [
    { heading: 'NAME', about: '', cell: ({ name }: { name: string }) => name, yields: 2, last: true },
    { heading: 'OTHER', about: '', cell: () => 'b'.repeat(20), yields: 1 },
    { heading: 'N', about: '', cell: () => '1' },
  ];
  const at = (width: number): string | undefined => table(columns, [{ name: 'a'.repeat(20) }], width).map(text)[1];
  expect(at(44)).toBe(`${'a'.repeat(20)}  ${'b'.repeat(18)}…  1`);
  expect(at(36)).toBe(`${'a'.repeat(20)}  1`);
  expect(at(20)).toBe(`${'a'.repeat(16)}…  1`);
});

test('any table fits, as long as the columns that are always complete fit', () => {
  const word = fc.string({ unit: 'grapheme-ascii', maxLength: 50 });
  fc.assert(
    fc.property(
      fc.array(fc.record({ long: word, short: fc.constant('abc') })),
      fc.integer({ min: 5, max: 80 }),
      (rows, width) => {
        for (const line of shown(String(width), rows)) expect(line.length).toBeLessThanOrEqual(width);
      },
    ),
  );
});

test('single lines leave out the same column after the widest row, even if a later row would fit', () => {
  vi.stubEnv('COLUMNS', '18');
  const lines = new Lines(COLUMNS);
  expect(lines.line({ long: 'a'.repeat(10), short: 'abc' })).toBe('aaaaaaaaaa  abc');
  expect(lines.line({ long: 'a'.repeat(10), short: 'abcdefgh' })).toBe('abcdefgh');
  expect(lines.line({ long: 'a'.repeat(10), short: 'abc' })).toBe('abc');
});

test('single lines stand below their headings, which are as wide as the first rows need', () => {
  vi.stubEnv('COLUMNS', '');
  const lines = new Lines(COLUMNS);
  const rows = [
    { long: 'abc', short: 'x' },
    { long: 'abcdef', short: 'y' },
  ];
  expect([text(lines.head(rows)), ...rows.map((row) => lines.line(row))]).toEqual([
    'LONG    SHORT',
    'abc     x',
    'abcdef  y',
  ]);
  expect(lines.line({ long: 'abcdefgh', short: 'z' })).toBe('abcdefgh  z');
});
