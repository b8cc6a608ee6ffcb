import { describe, expect } from 'vitest';
import { EtcdAlreadyExist, EtcdCompareFailed, EtcdKeyNotFound } from '../../../src/errors.ts';
import type { Answer, KeysApi } from '../../../src/v2/keys-api.ts';
import { rejection } from '../../support/clients.ts';
import { until } from '../../support/until.ts';
import type { StoreTest } from './store.ts';

const renew = async (keys: KeysApi, key: string) => {
  const { node } = await keys.get(key);
  return keys.renew(key, { prevValue: 'v', prevIndex: node.modifiedIndex, ttl: 60 });
};

const ANSWERS: readonly (readonly [string, (keys: KeysApi, key: string) => Promise<Answer | undefined>])[] = [
  ['get', (keys, key) => keys.get(key)],
  ['set', (keys, key) => keys.set(key, 'w')],
  ['createInOrder', (keys, key) => keys.createInOrder(`${key}-queue`, 'w')],
  ['renew', renew],
  ['delete', (keys, key) => keys.delete(key)],
  ['watch', async (keys, key) => keys.watch(key, { after: (await keys.get(key)).node.modifiedIndex - 1 })],
];

export function answers(test: StoreTest): void {
  describe('the answer to', () => {
    test.for(ANSWERS)('%s has the time of the request and the id of the cluster', async ([, ask], { keys, dir }) => {
      await keys.set(`${dir}/f`, 'v');
      const before = performance.now();
      const answer = await ask(keys, `${dir}/f`);
      const after = performance.now();
      expect(answer?.sentAt).toBeGreaterThanOrEqual(before);
      expect(answer?.sentAt).toBeLessThanOrEqual(after);
      expect(answer?.clusterId).toEqual(expect.stringMatching(/./));
      expect(keys.clusterId).toBe(answer?.clusterId);
    });
  });

  test('two clients of one store have the same cluster id', async ({ keys, dir, openAnother }) => {
    const other = await openAnother();
    const { clusterId } = await keys.set(`${dir}/f`, 'v');
    expect(await other.get(`${dir}/f`)).toMatchObject({ clusterId });
    expect(other.clusterId).toBe(clusterId);
  });

  test('the lock prefix is an absolute key', ({ keys }) => {
    expect(keys.lockPrefix).toMatch(/^(\/[^/]+)+$/);
  });

  describe('the index', () => {
    test('grows with each write, and a later read has at least the same index', async ({ keys, dir, openAnother }) => {
      const other = await openAnother();
      const indices: number[] = [];
      for (const [at, write] of [
        () => keys.set(`${dir}/f`, 'v'),
        () => other.set(`${dir}/f`, 'v', { prevValue: 'v' }),
        () => renew(keys, `${dir}/f`),
        () => other.createInOrder(dir, 'v'),
        () => keys.set(`${dir}/d`, undefined, { dir: true }),
        () => other.delete(`${dir}/d`, { dir: true }),
        () => keys.delete(`${dir}/f`, { prevValue: 'v' }),
      ].entries()) {
        const { node } = await write();
        indices.push(node.modifiedIndex, (await (at % 2 ? keys : other).get(dir)).index);
      }
      expect(indices.toSorted((a, b) => a - b)).toEqual(indices);
      const written = indices.filter((_, i) => i % 2 === 0);
      expect(new Set(written).size).toBe(written.length);
    });

    // Keys of earlier tests that expire also raise the index, so this repeats until none does.
    test('does not grow with reads, watches and failed writes', async ({ keys, dir }) => {
      const { node } = await keys.set(`${dir}/f`, 'v');
      await until(
        async () => {
          const { index } = await keys.get(dir);
          await rejection(keys.set(`${dir}/f`, 'w', { prevValue: 'other' }), EtcdCompareFailed);
          await rejection(keys.set(`${dir}/f`, 'w', { prevExist: false }), EtcdAlreadyExist);
          await rejection(keys.delete(`${dir}/missing`), EtcdKeyNotFound);
          await rejection(keys.get(`${dir}/missing`), EtcdKeyNotFound);
          await keys.watch(`${dir}/f`, { after: node.modifiedIndex - 1 });
          return (await keys.get(dir)).index - index;
        },
        (by) => by === 0,
      );
    });
  });
}
