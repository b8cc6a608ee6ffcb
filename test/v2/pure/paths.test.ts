import { posix } from 'node:path';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { show } from '../../../src/base/checks.ts';
import { baseName, checkKey, checkLockName, hasFullWidth, sequenceOf } from '../../../src/v2/paths.ts';

test.each([
  'file1',
  'with space',
  'umläut',
  '中文',
  '🔒',
  'a/b/c',
  'a/5',
  'dots.and-dashes_~',
  'plus+sign',
  "quote'",
  'semi;colon',
  'at@colon:eq=amp&',
  'back\\slash',
  '[x]{y}|^`<>"',
  'what?',
  'sharp#',
  '%41',
  '...',
  '.hidden',
  'trailing.',
  ' ',
])('%j is a valid lock name', (name) => {
  expect(() => checkLockName(name)).not.toThrow();
  expect(() => checkKey('key', `/_locks/${name}`)).not.toThrow();
});

test.each([
  ['', 'lock name must not be empty, got ""'],
  ['/lead', 'lock name must have no empty, "." or ".." segment, got "/lead"'],
  ['trail/', 'lock name must have no empty, "." or ".." segment, got "trail/"'],
  ['a//b', 'lock name must have no empty, "." or ".." segment, got "a//b"'],
  ['/', 'lock name must have no empty, "." or ".." segment, got "/"'],
  ['.', 'lock name must have no empty, "." or ".." segment, got "."'],
  ['..', 'lock name must have no empty, "." or ".." segment, got ".."'],
  ['a/./b', 'lock name must have no empty, "." or ".." segment, got "a/./b"'],
  ['a/../b', 'lock name must have no empty, "." or ".." segment, got "a/../b"'],
  ['a/..', 'lock name must have no empty, "." or ".." segment, got "a/.."'],
  ['ü'.repeat(376), `lock name must have at most 750 bytes, got 752: "${'ü'.repeat(100)}…"`],
  ['lone \ud83d', 'lock name must be well-formed Unicode, got "lone \\ud83d"'],
])('%j is not a valid lock name', (name, message) => {
  expect(() => checkLockName(name)).toThrow(RangeError);
  expect(() => checkLockName(name)).toThrow(message);
});

test.each([
  [undefined, 'undefined'],
  [null, 'null'],
  [5, '5'],
  [5n, '5n'],
  [{}, '[object Object]'],
  [['a'], '[object Array]'],
])('a lock name or key must be a string, not %s', (value, shown) => {
  expect(() => checkLockName(value)).toThrow(TypeError);
  expect(() => checkLockName(value)).toThrow(`lock name must be a string, got ${shown}`);
  expect(() => checkKey('lockPrefix', value)).toThrow(TypeError);
  expect(() => checkKey('lockPrefix', value)).toThrow(`lockPrefix must be a string, got ${shown}`);
});

test.each(['', 'x', '/', '//', '/a/', '/a//b', '/./a', '/a/..'])('%j is not a valid key', (key) => {
  expect(() => checkKey('key', key)).toThrow(RangeError);
  expect(() => checkKey('key', key)).toThrow(`got ${JSON.stringify(key)}`);
});

test('accepts exactly the names that a URL parser and path normalization leave unchanged', () => {
  const segment = fc.oneof(fc.constantFrom('', '.', '..', '...', 'a', '0'), fc.string({ minLength: 1 }));
  fc.assert(
    fc.property(fc.array(segment, { minLength: 1, maxLength: 4 }), (segments) => {
      const name = segments.join('/');
      const path = `/${name.split('/').map(encodeURIComponent).join('/')}`;
      // The parser of Node 20.20 alone leaves "/0/.a/." as it is.
      const parsed = () => posix.normalize(new URL(path, 'http://x').pathname);
      const clean = name !== '' && !/\/\/|\/$/.test(path) && parsed() === path;
      expect(isAccepted(name)).toBe(clean);
    }),
  );
});

test.each([
  ['/_locks/x/00000000000000000004', 4n],
  ['/_locks/x/3', 3n],
  ['/_locks/x/0', 0n],
  ['7', 7n],
  ['/_locks/x/99999999999999999999', 99999999999999999999n],
  ['/_locks/x/-1', undefined],
  ['/_locks/x/1.5', undefined],
  ['/_locks/x/1e3', undefined],
  ['/_locks/x/0x10', undefined],
  ['/_locks/x/ 1', undefined],
  ['/_locks/x/1\n', undefined],
  ['/_locks/x/٣', undefined],
  ['/_locks/5/sub', undefined],
  ['/_locks/x/', undefined],
])('the sequence number of %j is %s', (key, sequence) => {
  expect(sequenceOf(key)).toBe(sequence);
});

test('a sequence number can be read from a name with any padding', () => {
  fc.assert(
    fc.property(fc.bigInt({ min: 0n, max: 2n ** 64n - 1n }), fc.integer({ min: 1, max: 20 }), (sequence, width) => {
      expect(sequenceOf(`/_locks/x/${String(sequence).padStart(width, '0')}`)).toBe(sequence);
    }),
  );
});

test('names of full width have the same order as strings and as numbers', () => {
  const sequences = fc.uniqueArray(fc.bigInt({ min: 0n, max: 2n ** 64n - 1n }));
  fc.assert(
    fc.property(sequences, (numbers) => {
      const names = numbers.map((number) => `/_locks/x/${String(number).padStart(20, '0')}`);
      expect(names.every(hasFullWidth)).toBe(true);
      const byNumber = [...numbers].sort((a, b) => (a < b ? -1 : 1));
      expect(names.sort().map(sequenceOf)).toEqual(byNumber);
    }),
  );
});

test.each([
  ['/_locks/x/00000000000000000004', true],
  ['/_locks/x/4', false],
  ['/_locks/x/0000000000000000004', false],
  ['/_locks/x/000000000000000000004', false],
])('%j has the width of etcd 2.2 and later: %s', (key, full) => {
  expect(hasFullWidth(key)).toBe(full);
});

test('the base name is the part after the last slash', () => {
  expect(baseName('/_locks/a/b')).toBe('b');
  expect(baseName('b')).toBe('b');
  expect(baseName('/a/')).toBe('');
});

test.each([
  ['a\n"b"', '"a\\n\\"b\\""'],
  [Number.NaN, 'NaN'],
  [true, 'true'],
  [Symbol('s'), 'Symbol(s)'],
  [new Date(0), '[object Date]'],
])('an error message can show %s', (value, shown) => {
  expect(show(value)).toBe(shown);
});

test('an error message shows only the beginning of a long string', () => {
  expect(show('x'.repeat(101))).toBe(`"${'x'.repeat(100)}…"`);
  expect(show('x'.repeat(100))).toBe(`"${'x'.repeat(100)}"`);
});

function isAccepted(name: string): boolean {
  try {
    checkLockName(name);
    return true;
  } catch {
    return false;
  }
}
