import fc from 'fast-check';
import { expect, test } from 'vitest';
import { formatValue, isShared, parseValue } from '../../src/recipe/entry-value.ts';

const values = fc.record({
  mode: fc.constantFrom('exclusive' as const, 'shared' as const),
  identity: fc.option(fc.string({ minLength: 1, unit: 'binary' }), { nil: undefined }),
  uuid: fc.stringMatching(/^[0-9a-f]{32}$/),
});

test('the value of an entry survives formatting and parsing', () => {
  fc.assert(
    fc.property(values, (value) => {
      const text = formatValue(value);
      expect(parseValue(text)).toEqual(value);
      expect(isShared(text)).toBe(value.mode === 'shared');
    }),
  );
});

test.each([
  ['a1b2', { mode: 'exclusive', identity: undefined, uuid: 'a1b2' }],
  ['shared:a1b2', { mode: 'shared', identity: undefined, uuid: 'a1b2' }],
  ['id:pod-1:a1b2', { mode: 'exclusive', identity: 'pod-1', uuid: 'a1b2' }],
  ['shared:id:a:b:a1b2', { mode: 'shared', identity: 'a:b', uuid: 'a1b2' }],
  ['id:pod-1', { mode: 'exclusive', identity: undefined, uuid: 'id:pod-1' }],
  ['id::a1b2', { mode: 'exclusive', identity: undefined, uuid: 'id::a1b2' }],
  ['', { mode: 'exclusive', identity: undefined, uuid: '' }],
])('the value %j is parsed as %j', (text, value) => {
  expect(parseValue(text)).toEqual(value);
});
