import { describe, expect } from 'vitest';
import * as errors from '../../../src/errors.ts';
import type { KeysApi } from '../../../src/v2/keys-api.ts';
import { rejection } from '../../support/clients.ts';
import { type StoreTest, treeOf } from './store.ts';

/** The keys that the calls are about. */
interface Targets {
  /** Holds the value `v`. */
  readonly file: string;
  /** `modifiedIndex` of the file. */
  readonly index: number;
  /** A directory that contains a file. */
  readonly full: string;
  /** A directory that contains only a hidden file. */
  readonly seemsEmpty: string;
  /** A key that does not exist. */
  readonly missing: string;
}

type Refused = readonly [title: string, call: (keys: KeysApi, at: Targets) => Promise<unknown>];

const renew = (keys: KeysApi, key: string, options = {}) =>
  keys.renew(key, { prevValue: 'v', prevIndex: 1, ttl: 60, ...options });

const NOT_FOUND: readonly Refused[] = [
  ['a read', (keys, at) => keys.get(at.missing)],
  ['an update', (keys, at) => keys.set(at.missing, 'w', { prevExist: true })],
  ['an update of a directory', (keys, at) => keys.set(at.missing, undefined, { prevExist: true, dir: true })],
  ['a swap of a value', (keys, at) => keys.set(at.missing, 'w', { prevValue: 'v' })],
  ['a swap at an index', (keys, at) => keys.set(at.missing, 'w', { prevIndex: at.index })],
  ['a refresh', (keys, at) => keys.set(at.missing, undefined, { refresh: true, ttl: 60 })],
  ['a renewal', (keys, at) => renew(keys, at.missing)],
  ['a renewal that removes the expiry', (keys, at) => renew(keys, at.missing, { ttl: null })],
  ['a removal', (keys, at) => keys.delete(at.missing)],
  ['a removal of a tree', (keys, at) => keys.delete(at.missing, { recursive: true })],
  ['a removal of a value', (keys, at) => keys.delete(at.missing, { prevValue: 'v' })],
  // The error contains the first missing part of the path.
  ['a read further below', (keys, at) => keys.get(`${at.missing}/deep/er`)],
  ['an update further below', (keys, at) => keys.set(`${at.missing}/deep/er`, 'w', { prevExist: true })],
  ['a removal further below', (keys, at) => keys.delete(`${at.missing}/deep/er`)],
];

const NOT_FILE: readonly Refused[] = [
  ['a write of a file', (keys, at) => keys.set(at.full, 'w')],
  ['a write of a directory', (keys, at) => keys.set(at.full, undefined, { dir: true })],
  ['an update by a value', (keys, at) => keys.set(at.full, 'w', { prevExist: true })],
  ['a swap of a value', (keys, at) => keys.set(at.full, 'w', { prevValue: 'v' })],
  ['a swap at an index', (keys, at) => keys.set(at.full, 'w', { prevIndex: at.index })],
  ['a renewal', (keys, at) => renew(keys, at.full)],
  ['a removal as a file', (keys, at) => keys.delete(at.full)],
  ['a conditional removal', (keys, at) => keys.delete(at.full, { prevIndex: at.index })],
  ['a conditional removal of the tree', (keys, at) => keys.delete(at.full, { prevIndex: at.index, recursive: true })],
];

const NOT_DIR: readonly Refused[] = [
  ['a read', (keys, at) => keys.get(`${at.file}/below`)],
  ['a write', (keys, at) => keys.set(`${at.file}/below`, 'w')],
  ['a write further below', (keys, at) => keys.set(`${at.file}/be/low`, 'w')],
  ['a directory', (keys, at) => keys.set(`${at.file}/below`, undefined, { dir: true })],
  ['an append', (keys, at) => keys.createInOrder(at.file, 'w')],
  ['an append of a directory', (keys, at) => keys.createInOrder(at.file, undefined, { dir: true })],
  ['an append further below', (keys, at) => keys.createInOrder(`${at.file}/below`, 'w')],
  ['an update', (keys, at) => keys.set(`${at.file}/below`, 'w', { prevExist: true })],
  ['a renewal', (keys, at) => renew(keys, `${at.file}/below`)],
  ['a removal', (keys, at) => keys.delete(`${at.file}/below`)],
];

const EXISTS: readonly Refused[] = [
  ['a file', (keys, at) => keys.set(at.file, 'w', { prevExist: false })],
  ['a file of the same value', (keys, at) => keys.set(at.file, 'w', { prevExist: false, prevValue: 'v' })],
  ['a directory', (keys, at) => keys.set(at.file, undefined, { prevExist: false, dir: true })],
];

const ROOT: readonly Refused[] = [
  ['a write of a file', (keys) => keys.set('/', 'w')],
  ['a write of a directory', (keys) => keys.set('/', undefined, { dir: true })],
  ['an update', (keys) => keys.set('/', undefined, { dir: true, prevExist: true, ttl: 60 })],
  ['a creation', (keys) => keys.set('/', 'w', { prevExist: false })],
  ['a swap', (keys, at) => keys.set('/', 'w', { prevIndex: at.index })],
  ['a removal', (keys) => keys.delete('/', { recursive: true })],
  ['a renewal', (keys) => renew(keys, '/')],
];

const NOT_EMPTY: readonly Refused[] = [
  ['a directory with a file in it', (keys, at) => keys.delete(at.full, { dir: true })],
];

const ONLY_HIDDEN: readonly Refused[] = [
  ['a directory with a hidden file in it', (keys, at) => keys.delete(at.seemsEmpty, { dir: true })],
];

/** Conditions that do not match, and the cause that etcd reports. */
const DIFFERENT: readonly (readonly [string, (index: number) => object, (index: number) => string])[] = [
  ['a value', () => ({ prevValue: 'other' }), () => '[other != v]'],
  ['an index', () => ({ prevIndex: 1 }), (index) => `[1 != ${index}]`],
  ['both', () => ({ prevValue: 'other', prevIndex: 1 }), (index) => `[other != v] [1 != ${index}]`],
  ['only the index of both', () => ({ prevValue: 'v', prevIndex: 1 }), (index) => `[1 != ${index}]`],
  ['only the value of both', (prevIndex) => ({ prevValue: 'other', prevIndex }), () => '[other != v]'],
];

const COMPARING: readonly (readonly [string, (keys: KeysApi, at: Targets, options: object) => Promise<unknown>])[] = [
  ['a swap', (keys, at, options) => keys.set(at.file, 'w', options)],
  ['an update', (keys, at, options) => keys.set(at.file, 'w', { ...options, prevExist: true })],
  ['a refresh', (keys, at, options) => keys.set(at.file, undefined, { ...options, refresh: true, ttl: 60 })],
  ['a removal', (keys, at, options) => keys.delete(at.file, options)],
  ['a renewal', (keys, at, options) => renew(keys, at.file, { prevIndex: at.index, ...options })],
  [
    'a renewal that removes the expiry',
    (keys, at, options) => renew(keys, at.file, { prevIndex: at.index, ...options, ttl: null }),
  ],
];

export function failures(test: StoreTest): void {
  async function targetsIn(keys: KeysApi, dir: string): Promise<Targets> {
    const { node } = await keys.set(`${dir}/file`, 'v');
    await keys.set(`${dir}/full/child`, 'v');
    await keys.set(`${dir}/seems-empty/_hidden`, 'v');
    return {
      file: `${dir}/file`,
      index: node.modifiedIndex,
      full: `${dir}/full`,
      seemsEmpty: `${dir}/seems-empty`,
      missing: `${dir}/missing`,
    };
  }

  /** Expects that a call fails as it does in etcd, with the current index of the store, and changes nothing. */
  async function expectRefused(
    keys: KeysApi,
    dir: string,
    call: (at: Targets) => Promise<unknown>,
    expected: { ErrorClass: typeof errors.EtcdException; errorCode: number; words: string; cause(at: Targets): string },
  ): Promise<void> {
    const at = await targetsIn(keys, dir);
    const before = await treeOf(keys, dir);
    const { index: least } = await keys.get(dir);
    const error = await rejection(call(at), expected.ErrorClass);
    const { index: most } = await keys.get(dir);
    const cause = expected.cause(at);
    const { errorCode, words } = expected;
    expect(error).toMatchObject({ errorCode, cause, message: `${words} (${cause})`, outcomeUnknown: false });
    expect(error.index).toBeGreaterThanOrEqual(least);
    expect(error.index).toBeLessThanOrEqual(most);
    expect(await treeOf(keys, dir)).toEqual(before);
  }

  describe.for<[string, readonly Refused[], typeof errors.EtcdException, number, string, (at: Targets) => string]>([
    ['error 100 for a missing key:', NOT_FOUND, errors.EtcdKeyNotFound, 100, 'Key not found', (at) => at.missing],
    ['error 102 for a directory:', NOT_FILE, errors.EtcdNotFile, 102, 'Not a file', (at) => at.full],
    ['error 104 for a key below a file:', NOT_DIR, errors.EtcdNotDir, 104, 'Not a directory', (at) => at.file],
    ['error 105 for an existing key:', EXISTS, errors.EtcdAlreadyExist, 105, 'Key already exists', (at) => at.file],
    ['error 107 for the root:', ROOT, errors.EtcdRootReadOnly, 107, 'Root is read only', () => '/'],
    ['error 108 for the removal of:', NOT_EMPTY, errors.EtcdDirNotEmpty, 108, 'Directory not empty', (at) => at.full],
    [
      'error 108 for the removal of:',
      ONLY_HIDDEN,
      errors.EtcdDirNotEmpty,
      108,
      'Directory not empty',
      (at) => at.seemsEmpty,
    ],
  ])('%s', ([, calls, ErrorClass, errorCode, words, cause]) => {
    test.for(calls)('%s', async ([, call], { keys, dir }) => {
      await expectRefused(keys, dir, (at) => call(keys, at), { ErrorClass, errorCode, words, cause });
    });
  });

  describe.for(COMPARING)('%s whose condition does not match fails, and the cause shows', ([title, call]) => {
    const both = title.includes('renewal') ? DIFFERENT.slice(2) : DIFFERENT;
    test.for(both)('%s', async ([, options, cause], { keys, dir }) => {
      await expectRefused(keys, dir, (at) => call(keys, at, options(at.index)), {
        ErrorClass: errors.EtcdCompareFailed,
        errorCode: 101,
        words: 'Compare failed',
        cause: (at) => cause(at.index),
      });
    });
  });
}
