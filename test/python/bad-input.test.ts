import { expect, test } from 'vitest';
import { EtcdClient, Lock } from '../../src/index.ts';
import { rejection, useClient, useProxy } from '../support/locks.ts';

test.each([
  ['', '""'],
  ['.', '"."'],
  ['..', '".."'],
  ['a/../b', '"a/../b"'],
  ['a/./b', '"a/./b"'],
  ['a//b', '"a//b"'],
  ['/lead', '"/lead"'],
  ['trail/', '"trail/"'],
  ['\ud800', '\\ud800'],
])('a lock named %j is refused, with the name in the message', (name, shown) => {
  const client = new EtcdClient();
  expect(() => new Lock(client, name)).toThrow(RangeError);
  expect(() => new Lock(client, name)).toThrow(shown);
});

test.each([undefined, null, 5, ['a']])('a lock name that is not a string is refused: %j', (name) => {
  expect(() => new Lock(new EtcdClient(), name as unknown as string)).toThrow(TypeError);
});

test.each([
  [{ uuid: '' }, RangeError, '""'],
  [{ uuid: 'ü'.repeat(126) }, RangeError, 'uuid must have at most 250 bytes, got 252'],
  [{ uuid: 'a\ud800' }, RangeError, 'uuid must be well-formed Unicode'],
  [{ uuid: 'shared:a' }, RangeError, '"shared:a"'],
  [{ uuid: 'id:node-1:a' }, RangeError, '"id:node-1:a"'],
  [{ uuid: 'limit:2:a' }, RangeError, '"limit:2:a"'],
  [{ uuid: 5 as unknown as string }, TypeError, '5'],
  [{ margin: -1 }, RangeError, '-1'],
  [{ margin: Number.NaN }, RangeError, 'NaN'],
])('the lock option %j is refused', (options, ErrorClass, shown) => {
  expect(() => new Lock(new EtcdClient(), 'x', options)).toThrow(ErrorClass);
  expect(() => new Lock(new EtcdClient(), 'x', options)).toThrow(shown);
});

test.each([
  [{ lockTtl: 0 }, 'lockTtl must be an integer number of seconds from 1 to 2147483648 or null, got 0'],
  [{ lockTtl: -5 }, 'got -5'],
  [{ lockTtl: 1.5 }, 'got 1.5'],
  [{ lockTtl: Number.NaN }, 'got NaN'],
  [{ lockTtl: 2 ** 31 + 1 }, 'got 2147483649'],
  [{ lockTtl: '60' as unknown as number }, 'got "60"'],
  [{ lockTtl: Number.POSITIVE_INFINITY }, 'got Infinity'],
  [{ timeout: -1 }, 'timeout must be a number of seconds ≥ 0, got -1'],
  [{ timeout: Number.NaN }, 'got NaN'],
  [{ timeout: '5' as unknown as number }, 'got "5"'],
  [{ blocking: 0 as unknown as boolean }, 'blocking must be a boolean, got 0'],
  [{ keepAlive: 'yes' as unknown as boolean }, 'keepAlive must be a boolean, got "yes"'],
  [{ signal: {} as AbortSignal }, 'signal must be an AbortSignal'],
  [{ keepAlive: true, lockTtl: null }, 'keepAlive requires a number of seconds as lockTtl, got null'],
])('acquire(%j) rejects before any request', async (options, message) => {
  const proxy = await useProxy();
  const lock = new Lock(useClient({ endpoints: proxy.url }), 'x');
  const error = await rejection(lock.acquire(options));
  expect(error instanceof RangeError || error instanceof TypeError).toBe(true);
  expect((error as Error).message).toContain(message);
  expect(proxy.requests).toEqual([]);
});

test('a margin as long as the TTL is refused', async () => {
  const error = await rejection(new Lock(useClient(), 'x', { margin: 5 }).acquire({ lockTtl: 5 }));
  expect(error).toBeInstanceOf(RangeError);
  expect(error).toHaveProperty('message', 'margin must be less than lockTtl 5, got 5');
});

test('setUuid refuses an invalid uuid before any request', async () => {
  const proxy = await useProxy();
  const lock = new Lock(useClient({ endpoints: proxy.url }), 'x');
  expect(await rejection(lock.setUuid(''))).toBeInstanceOf(RangeError);
  expect(await rejection(lock.setUuid(undefined as unknown as string))).toBeInstanceOf(TypeError);
  expect(proxy.requests).toEqual([]);
});
