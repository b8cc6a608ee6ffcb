import { expect, test } from 'vitest';
import { readable, readEach } from '../../../src/v3/rpc/single-keys.ts';

const sizesOf = (keys: readonly string[]): number[] => [...readable(keys)].map(({ length }) => length);

test('a transaction reads at most 2,800 keys and 512 KiB of keys, in the order given', () => {
  const keys = Array.from({ length: 3000 }, (_, i) => `/_locks/${i}/id`);
  expect(sizesOf(keys)).toEqual([2800, 200]);
  expect([...readable(keys)].flat()).toEqual(keys);
  expect(sizesOf(keys.slice(0, 1200).map((key) => key.padEnd(1024, 'x')))).toEqual([512, 512, 176]);
  expect(sizesOf(['x'.repeat(600 * 1024), 'y'])).toEqual([1, 1]);
  expect(sizesOf([])).toEqual([]);
});

test('more than 100 keys are read by transactions inside one', () => {
  const keys = Array.from({ length: 201 }, (_, i) => `${i}`);
  const { success } = readEach(keys) as { success: { request_txn: { success: unknown[] } }[] };
  expect(success.map(({ request_txn: inner }) => inner.success.length)).toEqual([100, 100, 1]);
});
