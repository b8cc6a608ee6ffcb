import fc from 'fast-check';
import { expect, test } from 'vitest';
import { bridgedValue } from '../../../src/recipe/entries/bridged-value.ts';
import {
  type CandidateValue,
  formatValue,
  isShared,
  namesOf,
  parseValue,
  publishedIn,
} from '../../../src/recipe/entries/entry-value.ts';

const UUID = '0123456789abcdef0123456789abcdef';
const text = fc.string({ minLength: 1, unit: 'binary' });

const claims = fc.oneof(
  fc.record({ mode: fc.constantFrom('exclusive' as const, 'shared' as const), limit: fc.constant(undefined) }),
  fc.record({ mode: fc.constant('exclusive' as const), limit: fc.integer({ min: 1, max: 1000 }) }),
);

const oddText = fc.option(
  fc.oneof(
    text,
    fc.string({
      minLength: 1,
      unit: fc.constantFrom(':', '@', '%', 'id:', 'shared:', UUID, '3A', '\n', '\u202e', '@via bridge'),
    }),
  ),
  { nil: undefined },
);

const parts = fc.record({
  identity: fc.option(text, { nil: undefined }),
  label: oddText,
  uuid: fc.stringMatching(/^[0-9a-f]{32}$/),
  published: oddText,
});

const values = fc.tuple(claims, parts).map(([claim, rest]) => ({ ...claim, ...rest }));

/** The whole value of an entry. */
const format = (value: CandidateValue): string => formatValue(value, value.uuid);

/** Values that versions without limits know. */
const earlierValues = values.map((value) => ({ ...value, limit: undefined }));

/** How versions without labels parse a value. */
function parsedWithoutLabels(value: string) {
  const rest = value.startsWith('shared:') ? value.slice('shared:'.length) : value;
  const [, identity] = /^id:(.+):([^:]+)$/s.exec(rest) ?? [];
  return { mode: rest === value ? 'exclusive' : 'shared', identity };
}

test('the value of an entry survives formatting and parsing', () => {
  fc.assert(
    fc.property(values, ({ published, ...parts }) => {
      const formatted = format({ ...parts, published });
      expect(parseValue(formatted)).toEqual(parts);
      expect(publishedIn(formatted)).toBe(published);
      expect(isShared(formatted)).toBe(parts.mode === 'shared');
    }),
  );
});

test('what a bridge adds to a value is the end of its label, and no part of what is published', () => {
  fc.assert(
    fc.property(values, ({ published, label, ...parts }) => {
      const bridged = bridgedValue(format({ ...parts, label, published }));
      const shown = label === undefined && published === undefined ? 'via bridge' : `${label ?? ''}@via bridge`;
      expect(parseValue(bridged)).toEqual({ ...parts, label: shown });
      expect(publishedIn(bridged)).toBe(published);
    }),
  );
});

test('a label and a published text do not change the mode and the identity that versions without labels find', () => {
  fc.assert(
    fc.property(earlierValues, (value) => {
      const { mode, identity } = value;
      expect(parsedWithoutLabels(format(value))).toEqual({ mode, identity });
    }),
  );
});

test('any value is parsed into the mode and identity that versions without labels find', () => {
  fc.assert(
    fc.property(
      fc.oneof(text, earlierValues.map(format)),
      fc.constantFrom('', '@', ':', `@${UUID}`, '@%'),
      (value, end) => {
        const { mode, identity } = parseValue(value + end);
        expect({ mode, identity }).toEqual(parsedWithoutLabels(value + end));
      },
    ),
  );
});

test('an entry with a limit is exclusive for versions without limits', () => {
  fc.assert(
    fc.property(values, ({ limit = 1, ...value }) => {
      const formatted = format({ ...value, mode: 'exclusive', limit });
      expect(parsedWithoutLabels(formatted).mode).toBe('exclusive');
    }),
  );
});

const NOTHING = { mode: 'exclusive', limit: undefined, identity: undefined, label: undefined };

test.each([
  ['a1b2', { ...NOTHING, uuid: 'a1b2' }],
  ['shared:a1b2', { ...NOTHING, mode: 'shared', uuid: 'a1b2' }],
  ['id:pod-1:a1b2', { ...NOTHING, identity: 'pod-1', uuid: 'a1b2' }],
  ['shared:id:a:b:a1b2', { ...NOTHING, mode: 'shared', identity: 'a:b', uuid: 'a1b2' }],
  ['id:pod-1', { ...NOTHING, uuid: 'id:pod-1' }],
  ['id::a1b2', { ...NOTHING, uuid: 'id::a1b2' }],
  ['', { ...NOTHING, uuid: '' }],
  [`${UUID}@web-1%3A17`, { ...NOTHING, label: 'web-1:17', uuid: UUID }],
  [`shared:id:a@b:${UUID}@x`, { ...NOTHING, mode: 'shared', identity: 'a@b', label: 'x', uuid: UUID }],
  [`${UUID}@`, { ...NOTHING, uuid: `${UUID}@` }],
  [`${UUID}@%zz`, { ...NOTHING, label: '%zz', uuid: UUID }],
  [`${UUID}@a:b`, { ...NOTHING, label: 'a:b', uuid: UUID }],
  ['limit:3:a1b2', { ...NOTHING, limit: 3, uuid: 'a1b2' }],
  [`limit:12:id:a:b:${UUID}@x`, { ...NOTHING, limit: 12, identity: 'a:b', label: 'x', uuid: UUID }],
  ['limit:0:a1b2', { ...NOTHING, uuid: 'limit:0:a1b2' }],
  ['limit:03:a1b2', { ...NOTHING, uuid: 'limit:03:a1b2' }],
  ['limit:3:', { ...NOTHING, uuid: 'limit:3:' }],
  ['limit:10000:a1b2', { ...NOTHING, uuid: 'limit:10000:a1b2' }],
  ['shared:limit:3:a1b2', { ...NOTHING, mode: 'shared', uuid: 'limit:3:a1b2' }],
  [`${UUID}@a@b@c`, { ...NOTHING, label: 'a@b@c', uuid: UUID }],
  [`${UUID}@a:b@c`, { ...NOTHING, label: 'a:b@c', uuid: UUID }],
  [`${UUID}@via bridge`, { ...NOTHING, label: 'via bridge', uuid: UUID }],
  [`${UUID}@@`, { ...NOTHING, label: '@', uuid: UUID }],
  ['a1b2@web-1', { ...NOTHING, uuid: 'a1b2@web-1' }],
  [`${UUID.toUpperCase()}@x`, { ...NOTHING, uuid: `${UUID.toUpperCase()}@x` }],
])('the value %j is parsed as %j', (value, parts) => {
  expect(parseValue(value)).toEqual(parts);
  expect(publishedIn(value)).toBeUndefined();
});

test.each([
  [`${UUID}@web-1%3A17@http%3A%2F%2Fa%3A80`, 'web-1:17', 'http://a:80'],
  [`shared:id:a@b:${UUID}@x@%40%25`, 'x', '@%'],
  [`${UUID}@@%7B%7D`, undefined, '{}'],
  [`${UUID}@x@%zz`, 'x', '%zz'],
  [`${UUID}@@x@via bridge`, '@via bridge', 'x'],
])('the value %j has the label %j and publishes %j', (value, label, published) => {
  expect(parseValue(value)).toMatchObject({ uuid: UUID, label });
  expect(publishedIn(value)).toBe(published);
});

test.each([
  [`id:pod-1:${UUID}@x`, ['pod-1', 'x', UUID]],
  [`${UUID}@x`, ['x', UUID]],
  [UUID, [UUID]],
  ['', ['(no value)']],
])('the names of an entry with the value %j are %j', (value, names) => {
  expect(namesOf(parseValue(value))).toEqual(names);
});
