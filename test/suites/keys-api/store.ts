import { randomUUID } from 'node:crypto';
import { expect, test } from 'vitest';
import { EtcdKeyNotFound } from '../../../src/errors.ts';
import type { LockClient } from '../../../src/recipe/store.ts';
import type { Change, KeyEvent, KeysApi, Node, WatchOptions } from '../../../src/v2/keys-api.ts';
import { rejection } from '../../support/clients.ts';

/** A client that is closed by whoever opened it. */
export interface ClosableKeys extends KeysApi, LockClient {
  close(options?: { readonly timeout?: number }): Promise<void>;
}

/** Opens one more client of the same store. */
export type OpenKeys = () => ClosableKeys | Promise<ClosableKeys>;

/** A test with a directory that no other test uses, and with clients that are closed when it is over. */
export const storeTest = (open: OpenKeys) =>
  test
    .extend('dir', () => `/contract/${randomUUID()}`)
    .extend('openAnother', ({ onTestFinished }) => async () => {
      const keys = await open();
      onTestFinished(() => keys.close());
      return keys;
    })
    .extend('keys', ({ openAnother }) => openAnother());

export type StoreTest = ReturnType<typeof storeTest>;

/** A wait that the store has taken up, and the index it began at. */
export async function watching(
  keys: KeysApi,
  key: string,
  options: WatchOptions = {},
): Promise<{ readonly index: number; readonly event: Promise<KeyEvent | undefined> }> {
  let began: (index: number) => void = () => {};
  const event = keys.watch(key, { ...options, started: (index) => began(index) });
  const index = await new Promise<number>((resolve, reject) => {
    began = resolve;
    event.then(() => reject(new Error('the wait ended before it had begun')), reject);
  });
  return { index, event };
}

/** Waits until a key expires whose TTL is set now: what was to expire before that has had its time. */
export async function untilExpiry(keys: KeysApi, dir: string, ttl: number): Promise<void> {
  const { node } = await keys.set(`${dir}/clock`, '', { ttl });
  expect(await keys.watch(`${dir}/clock`, { after: node.modifiedIndex })).toMatchObject({ action: 'expire' });
}

/** Passes where there is nothing under the key. */
export async function expectMissing(keys: KeysApi, key: string): Promise<void> {
  await rejection(keys.get(key), EtcdKeyNotFound);
}

/** The keys of some nodes. */
export const keysOf = (nodes: readonly Node[]): string[] => nodes.map(({ key }) => key);

/** Everything below a directory, as far as it is not hidden: to compare a store with what it was. */
export const treeOf = async (keys: KeysApi, dir: string): Promise<Node> =>
  (await keys.get(dir, { recursive: true, sorted: true })).node;

/** One call of each kind, none of them with an option that is out of range. */
export const CALLS: readonly (readonly [string, (keys: KeysApi, key: string, options?: object) => Promise<unknown>])[] =
  [
    ['get', (keys, key, options) => keys.get(key, options)],
    ['set', (keys, key, options) => keys.set(key, 'changed', options)],
    ['createInOrder', (keys, key, options) => keys.createInOrder(key, 'added', options)],
    ['renew', (keys, key, options) => keys.renew(key, { prevValue: 'v', prevIndex: 1, ttl: 60, ...options })],
    ['delete', (keys, key, options) => keys.delete(key, { recursive: true, ...options })],
    ['watch', (keys, key, options) => keys.watch(key, { after: 0, ...options })],
  ];

/** That an answer's expiry is that many seconds away, to within two: clocks are read before and after. */
export function expectExpiry({ node }: Pick<Change, 'node'>, seconds: number): void {
  expect(node.ttl).toBe(seconds);
  const left = (Date.parse(node.expiration ?? '') - Date.now()) / 1000;
  expect(left).toBeGreaterThan(seconds - 2);
  expect(left).toBeLessThan(seconds + 2);
}
