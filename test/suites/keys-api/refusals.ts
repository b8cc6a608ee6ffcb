import { inspect } from 'node:util';
import { describe, expect } from 'vitest';
import type { KeysApi } from '../../../src/v2/keys-api.ts';
import { rejection } from '../../support/clients.ts';
import { CALLS, type StoreTest, treeOf } from './store.ts';

const BAD_KEYS: readonly (readonly [string, (dir: string) => unknown, typeof RangeError | typeof TypeError, string])[] =
  [
    ['that is not absolute', (dir) => dir.slice(1), RangeError, 'key must begin with "/"'],
    ['that is empty', () => '', RangeError, 'key must begin with "/"'],
    ['with an empty part', (dir) => `${dir}//f`, RangeError, 'key must have no empty, "." or ".." segment'],
    ['with a trailing slash', (dir) => `${dir}/f/`, RangeError, 'key must have no empty, "." or ".." segment'],
    ['with the part "."', (dir) => `${dir}/./f`, RangeError, 'key must have no empty, "." or ".." segment'],
    ['with the part ".."', (dir) => `${dir}/d/../f`, RangeError, 'key must have no empty, "." or ".." segment'],
    ['with a lone surrogate', (dir) => `${dir}/\ud800`, RangeError, 'key must be well-formed Unicode'],
    ['that is missing', () => undefined, TypeError, 'key must be a string'],
    ['that is a number', () => 7, TypeError, 'key must be a string'],
    ['that is null', () => null, TypeError, 'key must be a string'],
  ];

type Call = (keys: KeysApi, key: string, options: never) => Promise<unknown>;

const set: Call = (keys, key, options) => keys.set(key, 'w', options);
const withoutValue: Call = (keys, key, options) => keys.set(key, undefined, options);
const createInOrder: Call = (keys, key, options) => keys.createInOrder(key, 'w', options);
const remove: Call = (keys, key, options) => keys.delete(key, options);
const watch: Call = (keys, key, options) => keys.watch(key, options);
const renew: Call = (keys, key, options: object) =>
  keys.renew(key, { prevValue: 'v', prevIndex: 1, ttl: 60, ...options });

const BAD_INTEGERS = [-1, 1.5, Number.NaN, Number.POSITIVE_INFINITY, 2 ** 53, '5'];
const BAD_SECONDS = [0, -1, Number.NaN, '5'];

/** A value as an error message shows it. */
const shown = (value: unknown): string => (typeof value === 'string' ? JSON.stringify(value) : String(value));

const BAD_NUMBERS: readonly (readonly [string, Call, string, readonly unknown[], string])[] = [
  ['set', set, 'ttl', BAD_INTEGERS, 'an integer ≥ 0'],
  ['createInOrder', createInOrder, 'ttl', BAD_INTEGERS, 'an integer ≥ 0'],
  ['renew', renew, 'ttl', [0, ...BAD_INTEGERS], 'an integer ≥ 1'],
  ['set', set, 'prevIndex', [0, ...BAD_INTEGERS], 'an integer ≥ 1'],
  ['delete', remove, 'prevIndex', [0, ...BAD_INTEGERS], 'an integer ≥ 1'],
  ['renew', renew, 'prevIndex', [0, ...BAD_INTEGERS], 'an integer ≥ 1'],
  ['watch', watch, 'after', BAD_INTEGERS, 'an integer ≥ 0'],
  ['watch', watch, 'timeout', BAD_SECONDS, 'a number of seconds > 0'],
];

const REFRESH = 'refresh needs a ttl and no value, got ttl';

const BAD_OPTIONS: readonly (readonly [string, Call, object, string])[] = [
  ...BAD_NUMBERS.flatMap(([name, call, option, values, must]) =>
    values.map((value) => [name, call, { [option]: value }, `${option} must be ${must}, got ${shown(value)}`] as const),
  ),
  ['set', set, { prevValue: '' }, 'prevValue must not be empty'],
  ['delete', remove, { prevValue: '' }, 'prevValue must not be empty'],
  ['renew', renew, { prevValue: '' }, 'prevValue must not be empty'],
  ['set', set, { refresh: true, ttl: 60 }, `${REFRESH} 60 and value "w"`],
  ['set without a value', withoutValue, { refresh: true }, `${REFRESH} undefined and value undefined`],
  ['set without a value', withoutValue, { refresh: true, ttl: null }, `${REFRESH} null and value undefined`],
  ['set', set, { dir: true }, 'a directory has no value, got "w"'],
  ['createInOrder', createInOrder, { dir: true }, 'a directory has no value, got "w"'],
];

const TITLED = BAD_OPTIONS.map(([name, ...rest]) => [`${name} with ${inspect(rest[1])}`, ...rest] as const);

export function refusals(test: StoreTest): void {
  describe('invalid input is refused and changes nothing:', () => {
    test.for(BAD_KEYS)('a key %s', async ([, keyIn, ErrorClass, message], { keys, dir }) => {
      await keys.set(`${dir}/f`, 'v');
      await keys.set(`${dir}/d/g`, 'v');
      const before = await treeOf(keys, dir);
      const key = keyIn(dir);
      for (const [, call] of CALLS) {
        const error = await rejection<Error>(call(keys, key as string), ErrorClass);
        expect(error.message).toContain(message);
        expect(error.message).toContain(`got ${shown(key)}`);
      }
      expect(await treeOf(keys, dir)).toEqual(before);
    });

    test.for(TITLED)('%s', async ([, call, options, message], { keys, dir }) => {
      await keys.set(`${dir}/f`, 'v');
      const before = await treeOf(keys, dir);
      const error = await rejection(call(keys, `${dir}/f`, options as never), RangeError);
      expect(error.message).toContain(message);
      expect(await treeOf(keys, dir)).toEqual(before);
    });

    test.for(CALLS)('%s with an invalid attemptTimeout', async ([, call], { keys, dir }) => {
      await keys.set(`${dir}/f`, 'v');
      const before = await treeOf(keys, dir);
      for (const attemptTimeout of [0, -1, Number.NaN, Number.POSITIVE_INFINITY, '5']) {
        const error = await rejection(call(keys, `${dir}/f`, { attemptTimeout }), RangeError);
        expect(error.message).toBe(`attemptTimeout must be a number of seconds > 0, got ${shown(attemptTimeout)}`);
      }
      expect(await treeOf(keys, dir)).toEqual(before);
    });
  });
}
