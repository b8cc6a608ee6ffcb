import { describe, expect, test, vi } from 'vitest';
import { LockManager, type LockManagerOptions, type RequestOptions } from '../../../src/index.ts';
import { MemoryStore } from '../../../src/server/store/memory.ts';
import { rejection } from '../../support/locks.ts';

const METHODS = ['get', 'set', 'createInOrder', 'renew', 'delete', 'watch'] as const;

/** Returns a store whose methods all fail. */
function untouchable(): MemoryStore {
  const keys = new MemoryStore();
  for (const method of METHODS) vi.spyOn(keys, method).mockRejectedValue(new Error(`${method} was called`));
  return keys;
}

type Bad = readonly [options: object, ErrorClass: typeof RangeError | typeof TypeError, message: string];

/** Invalid options of both managers and requests. */
const COMMON: readonly Bad[] = [
  [{ ttl: 0 }, RangeError, 'ttl must be an integer number of seconds from 1 to 2147483648, got 0'],
  [{ ttl: -5 }, RangeError, 'got -5'],
  [{ ttl: 1.5 }, RangeError, 'got 1.5'],
  [{ ttl: Number.NaN }, RangeError, 'got NaN'],
  [{ ttl: Number.POSITIVE_INFINITY }, RangeError, 'got Infinity'],
  [{ ttl: 2 ** 31 + 1 }, RangeError, 'got 2147483649'],
  [{ ttl: '60' }, RangeError, 'ttl must be an integer number of seconds from 1 to 2147483648, got "60"'],
  [{ ttl: 60n }, RangeError, 'got 60n'],
  // `Lock` accepts null, but a lock that is always renewed needs a TTL.
  [{ ttl: null }, RangeError, 'got null'],
  [{ timeout: -1 }, RangeError, 'timeout must be a number of seconds ≥ 0, got -1'],
  [{ timeout: Number.NaN }, RangeError, 'got NaN'],
  [{ timeout: Number.POSITIVE_INFINITY }, RangeError, 'got Infinity'],
  [{ timeout: '5' }, RangeError, 'got "5"'],
  [{ timeout: null }, RangeError, 'got null'],
  [{ identity: '' }, RangeError, 'identity must not be empty, got ""'],
  [{ identity: 5 }, TypeError, 'identity must be a string, got 5'],
  [{ identity: null }, TypeError, 'got null'],
  [{ identity: 'a\ud800' }, RangeError, 'identity must be well-formed Unicode'],
  [{ identity: 'ü'.repeat(101) }, RangeError, 'identity must have at most 200 bytes, got 202'],
  [{ holdAtLeast: -1 }, RangeError, 'holdAtLeast must be a number of seconds ≥ 0, got -1'],
  [{ holdAtLeast: '60' }, RangeError, 'got "60"'],
  [{ holdAtLeast: null }, RangeError, 'got null'],
  [{ holdAtLeast: 2 ** 31 + 1 }, RangeError, 'holdAtLeast must be at most 2147483648, got 2147483649'],
  [{ maxHold: -1 }, RangeError, 'maxHold must be a number of seconds ≥ 0, got -1'],
  [{ maxHold: Number.POSITIVE_INFINITY }, RangeError, 'got Infinity'],
  [{ maxHold: null }, RangeError, 'got null'],
  [{ holdAtLeast: 61, maxHold: 60 }, RangeError, 'holdAtLeast must be at most maxHold 60, got 61'],
  [{ label: 5 }, TypeError, 'label must be a string, got 5'],
  [{ label: null }, TypeError, 'label must be a string, got null'],
  [{ label: 'a\ud800' }, RangeError, 'label must be well-formed Unicode, got "a\\ud800"'],
  [{ label: 'ü'.repeat(51) }, RangeError, 'label must have at most 100 bytes, got 102'],
];

const OF_REQUESTS: readonly Bad[] = [
  [{ mode: 'read' }, RangeError, `mode must be 'exclusive' or 'shared', got "read"`],
  [{ mode: null }, RangeError, 'got null'],
  [{ mode: 'Shared' }, RangeError, 'got "Shared"'],
  [{ ifAvailable: 1 }, TypeError, 'ifAvailable must be a boolean, got 1'],
  [{ ifAvailable: null }, TypeError, 'got null'],
  [{ reentrant: 'yes' }, TypeError, 'reentrant must be a boolean, got "yes"'],
  [{ steal: true }, TypeError, 'unknown option "steal": a holder cannot be forced to stop'],
  [{ signal: {} }, TypeError, 'signal must be an AbortSignal, got [object Object]'],
  [{ signal: null }, TypeError, 'got null'],
];

describe('a manager', () => {
  test.each([
    ...COMMON,
    [{ margin: -1 }, RangeError, 'margin must be a number of seconds ≥ 0, got -1'],
    [{ margin: Number.NaN }, RangeError, 'got NaN'],
    [{ margin: '1' }, RangeError, 'got "1"'],
    [{ margin: null }, RangeError, 'got null'],
    [{ margin: 30 }, RangeError, 'margin must be less than ttl 30, got 30'],
    [{ ttl: 5, margin: 7 }, RangeError, 'margin must be less than ttl 5, got 7'],
  ] satisfies Bad[])('cannot be created with %o', (options, ErrorClass, message) => {
    const make = () => new LockManager(untouchable(), options as LockManagerOptions);
    expect(make).toThrow(ErrorClass);
    expect(make).toThrow(message);
  });

  test.each([
    {},
    { ttl: 1 },
    { ttl: 2 ** 31 },
    { ttl: 1, margin: 0.999, timeout: 0.001 },
    { timeout: 0, margin: 0 },
    { identity: 'ü'.repeat(100) },
    { holdAtLeast: 2 ** 31, maxHold: 0 },
    { holdAtLeast: 0.5, maxHold: 0.5 },
    { label: '' },
    { label: 'ü'.repeat(50) },
  ])('can be created with %j, without a call', (options) => {
    expect(() => new LockManager(untouchable(), options)).not.toThrow();
  });

  test('is not affected by a later change of its options object', async () => {
    const options = { ttl: 600 };
    const locks = new LockManager(new MemoryStore(), options);
    options.ttl = 0;
    const held = await locks.acquire('x');
    expect(held.expiresIn()).toBeGreaterThan(500);
    await held.release();
  });
});

describe('a request', () => {
  test.each([...COMMON, ...OF_REQUESTS])('with %o is refused before any call', async (options, ErrorClass, message) => {
    const locks = new LockManager(untouchable());
    const calls = [
      () => locks.request('x', options as RequestOptions, () => expect.unreachable()),
      () => locks.acquire('x', options as never),
    ];
    for (const call of calls) {
      const error = await rejection(call());
      expect(error).toBeInstanceOf(ErrorClass);
      expect(error).toHaveProperty('message', expect.stringContaining(message));
    }
  });

  test('with a TTL that is not longer than the manager’s margin is refused before any call', async () => {
    const locks = new LockManager(untouchable(), { margin: 5 });
    const error = await rejection(locks.acquire('x', { ttl: 5 }));
    expect(error).toBeInstanceOf(RangeError);
    expect(error).toHaveProperty('message', 'margin must be less than ttl 5, got 5');
  });

  test('that must hold longer than the manager’s maxHold allows is refused before any call', async () => {
    const locks = new LockManager(untouchable(), { maxHold: 5 });
    const error = await rejection(locks.acquire('x', { holdAtLeast: 6 }));
    expect(error).toBeInstanceOf(RangeError);
    expect(error).toHaveProperty('message', 'holdAtLeast must be at most maxHold 5, got 6');
  });

  test.each([
    ['', '""'],
    ['.', '"."'],
    ['a/../b', '"a/../b"'],
    ['a//b', '"a//b"'],
    ['/lead', '"/lead"'],
    ['trail/', '"trail/"'],
    ['\ud800', '\\ud800'],
    ['x'.repeat(751), 'got 751'],
  ])('for a lock named %j is refused before any call', async (name, shown) => {
    const locks = new LockManager(untouchable());
    for (const call of [() => locks.request(name, () => expect.unreachable()), () => locks.acquire(name)]) {
      const error = await rejection(call());
      expect(error).toBeInstanceOf(RangeError);
      expect(error).toHaveProperty('message', expect.stringContaining(shown));
    }
  });

  test.each([undefined, null, 5, { name: 'a' }])('for a name that is not a string is refused: %j', async (name) => {
    const locks = new LockManager(untouchable());
    expect(await rejection(locks.request(name as never, () => expect.unreachable()))).toBeInstanceOf(TypeError);
    expect(await rejection(locks.acquire(name as never))).toBeInstanceOf(TypeError);
  });

  test.each([
    ['no callback', []],
    ['options instead of a callback', [{ ttl: 5 }]],
    ['options and no callback', [{ ttl: 5 }, undefined]],
    ['a callback that is not a function', [{}, 'text']],
  ])('with %s is refused before any call', async (_, args) => {
    const locks = new LockManager(untouchable());
    const request = locks.request.bind(locks) as (name: string, ...rest: unknown[]) => Promise<unknown>;
    const error = await rejection(request('x', ...args));
    expect(error).toBeInstanceOf(TypeError);
    expect(error).toHaveProperty('message', expect.stringContaining('callback must be a function, got'));
  });

  test.each([[null], [5], ['shared']])('with invalid options is refused before any call: %j', async (options) => {
    const locks = new LockManager(untouchable());
    for (const call of [
      () => locks.request('x', options as never, () => expect.unreachable()),
      () => locks.acquire('x', options as never),
      async () => new LockManager(untouchable(), options as never),
    ]) {
      const error = await rejection(call());
      expect(error).toBeInstanceOf(TypeError);
      expect(error).toHaveProperty('message', `options must be an object, got ${JSON.stringify(options)}`);
    }
  });

  test('accepts undefined as its options', async () => {
    const locks = new LockManager(new MemoryStore());
    const request = locks.request.bind(locks) as (name: string, ...rest: unknown[]) => Promise<unknown>;
    expect(await request('x', undefined, () => 'result')).toBe('result');
  });
});
