import { randomUUID } from 'node:crypto';
import { expect, test } from 'vitest';
import { EtcdKeyNotFound } from '../../../src/errors.ts';
import type { LockClient } from '../../../src/recipe/client.ts';
import type { Change, KeyEvent, KeysApi, Node, WatchOptions } from '../../../src/v2/keys-api.ts';
import { rejection } from '../../support/clients.ts';

/** A client that has to be closed by the code that opened it. */
export interface ClosableKeys extends KeysApi, LockClient {
  close(options?: { readonly timeout?: number }): Promise<void>;
}

/** Opens another client of the same store. */
export type OpenKeys = () => ClosableKeys | Promise<ClosableKeys>;

/** A test with a directory of its own, and with clients that are closed when the test ends. */
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

/** Starts a watch. Resolves once it has started in the store, to its event and the index at which it started. */
export async function watching(
  keys: KeysApi,
  key: string,
  options: WatchOptions = {},
): Promise<{ readonly index: number; readonly event: Promise<KeyEvent | undefined> }> {
  let began: (index: number) => void = () => {};
  const event = keys.watch(key, { ...options, started: (index) => began(index) });
  const index = await new Promise<number>((resolve, reject) => {
    began = resolve;
    event.then(() => reject(new Error('the watch ended before it started')), reject);
  });
  return { index, event };
}

/** Sets a key with the TTL and waits until it expires. Keys that should expire earlier are gone by then. */
export async function untilExpiry(keys: KeysApi, dir: string, ttl: number): Promise<void> {
  const { node } = await keys.set(`${dir}/clock`, '', { ttl });
  expect(await keys.watch(`${dir}/clock`, { after: node.modifiedIndex })).toMatchObject({ action: 'expire' });
}

/** Expects that a key does not exist. */
export async function expectMissing(keys: KeysApi, key: string): Promise<void> {
  await rejection(keys.get(key), EtcdKeyNotFound);
}

/** The keys of some nodes. */
export const keysOf = (nodes: readonly Node[]): string[] => nodes.map(({ key }) => key);

/** Reads everything below a directory, except hidden keys, to compare the state before and after a call. */
export const treeOf = async (keys: KeysApi, dir: string): Promise<Node> =>
  (await keys.get(dir, { recursive: true, sorted: true })).node;

/** One call of each kind, with valid options. */
export const CALLS: readonly (readonly [string, (keys: KeysApi, key: string, options?: object) => Promise<unknown>])[] =
  [
    ['get', (keys, key, options) => keys.get(key, options)],
    ['set', (keys, key, options) => keys.set(key, 'changed', options)],
    ['createInOrder', (keys, key, options) => keys.createInOrder(key, 'added', options)],
    ['renew', (keys, key, options) => keys.renew(key, { prevValue: 'v', prevIndex: 1, ttl: 60, ...options })],
    ['delete', (keys, key, options) => keys.delete(key, { recursive: true, ...options })],
    ['watch', (keys, key, options) => keys.watch(key, { after: 0, ...options })],
  ];

/** Expects an expiry `seconds` after the server carried out the write, between its request and now; clocks may differ by a second. */
export function expectExpiry({ node, sentAt }: Pick<Change, 'node' | 'sentAt'>, seconds: number): void {
  expect(node.ttl).toBe(seconds);
  const written = Date.parse(node.expiration ?? '') - seconds * 1000;
  expect(written).toBeGreaterThan(performance.timeOrigin + sentAt - 1000);
  expect(written).toBeLessThan(Date.now() + 1000);
}
