/** Transactions: their checks, which branch they take, and what each operation does. A single write is a transaction of one operation. */
import type { EtcdVersion } from '../../version.ts';
import { type Bytes, compare, type KeyRange, sizeOf } from '../bytes.ts';
import * as errors from '../errors.ts';
import type * as api from '../messages.ts';
import type { KeyValues, Write } from './key-values.ts';
import { checkRange, readRange } from './range.ts';

export const COMPARE_RESULTS = ['EQUAL', 'GREATER', 'LESS', 'NOT_EQUAL'] as const;
export const COMPARE_TARGETS = ['VERSION', 'CREATE', 'MOD', 'VALUE', 'LEASE'] as const;

/** Largest number of comparisons, or operations in a branch. Nested transactions get what the outer ones leave. */
const MOST_OPERATIONS = 128;

/** Maximum number of comparisons and operations in a transaction and all in it. etcd has no such limit: it allows many thousands. */
const MOST_IN_ALL = 1024;

/** Maximum number of keys that the ranges of a transaction may contain together. Each may find all keys of the store. */
const MOST_FOUND = 2 ** 22;

/** Maximum number of bytes of keys and values in a write. etcd counts some more bytes. */
const LARGEST = 1.5 * 2 ** 20;

/** What a transaction works on. */
export interface Stored {
  readonly keys: KeyValues;
  readonly hasLease: (id: bigint) => boolean;
  readonly version: EtcdVersion;
}

/** @throws {EtcdV3Refusal} if the request is invalid by itself */
export function checkPut(request: api.PutRequest): void {
  const { key, value, lease, ignore_value, ignore_lease } = request;
  if (key === '') throw errors.emptyKey();
  if (ignore_value && value !== '') throw errors.valueProvided();
  if (ignore_lease && lease !== 0n) throw errors.leaseProvided();
  if (sizeOf(request) > LARGEST) throw errors.tooLarge();
}

/** @throws {EtcdV3Refusal} if the request is invalid by itself */
export function checkDelete({ key }: api.DeleteRangeRequest): void {
  if (key === '') throw errors.emptyKey();
}

/** @throws {EtcdV3Refusal} if the request is invalid by itself */
export function checkTxn(request: api.TxnRequest, version: EtcdVersion): void {
  checkOperations(request, MOST_OPERATIONS, version);
  if (countOf(request) > MOST_IN_ALL) throw errors.tooManyOps();
  writtenKeys(request.success);
  writtenKeys(request.failure);
  if (sizeOfTxn(request) > LARGEST) throw errors.tooLarge();
}

function countOf({ compare: comparisons, success, failure }: api.TxnRequest): number {
  let count = comparisons.length + success.length + failure.length;
  for (const { request_txn: txn } of [...success, ...failure]) if (txn) count += countOf(txn);
  return count;
}

function sizeOfTxn({ compare: comparisons, success, failure }: api.TxnRequest): number {
  let size = 0;
  for (const { key, value = '' } of comparisons) size += sizeOf({ key, value });
  for (const { request_put: put, request_txn: txn } of [...success, ...failure])
    size += (put ? sizeOf(put) : 0) + (txn ? sizeOfTxn(txn) : 0);
  return size;
}

function checkOperations(request: api.TxnRequest, most: number, version: EtcdVersion): void {
  const { compare: comparisons, success, failure } = request;
  const count = Math.max(comparisons.length, success.length, failure.length);
  if (count > most) throw errors.tooManyOps();
  if (comparisons.some(({ key }) => key === '')) throw errors.emptyKey();
  for (const operation of [...success, ...failure]) {
    const { request_range: range, request_put: put, request_delete_range: removal, request_txn: txn } = operation;
    if (range) checkRange(range, version);
    else if (put) checkPut(put);
    else if (removal) checkDelete(removal);
    else if (txn) checkOperations(txn, most - count, version);
    else throw errors.keyNotFound();
  }
}

/**
 * Returns the keys that the operations put, and the ranges that they delete, with those of nested transactions.
 * @throws {EtcdV3Refusal} if a key would be put twice, or put and deleted
 */
function writtenKeys(operations: readonly api.RequestOp[]): { puts: Set<Bytes>; removals: readonly KeyRange[] } {
  const puts = new Set<Bytes>();
  const removals: KeyRange[] = operations.flatMap(({ request_delete_range: removal }) => removal ?? []);
  const isRemoved = (key: Bytes) => removals.some((range) => isPlainlyIn(range, key));
  for (const { request_txn: txn } of operations) {
    if (!txn) continue;
    const branches = [writtenKeys(txn.success), writtenKeys(txn.failure)];
    const inner = branches.flatMap((branch) => [...branch.puts]);
    if (inner.some((key) => puts.has(key) || isRemoved(key))) throw errors.duplicateKey();
    for (const key of inner) puts.add(key);
    for (const branch of branches) removals.push(...branch.removals);
  }
  for (const { request_put: put } of operations) {
    if (!put) continue;
    if (puts.has(put.key) || isRemoved(put.key)) throw errors.duplicateKey();
    puts.add(put.key);
  }
  return { puts, removals };
}

/** Like `isIn`, but a range up to the byte 0 is empty here, as it is in etcd's own check. */
const isPlainlyIn = (range: KeyRange, key: Bytes): boolean =>
  range.range_end === '' ? key === range.key : key >= range.key && key < range.range_end;

/** @throws {EtcdV3Refusal} if the lease does not exist */
function checkLease({ hasLease }: Stored, { lease }: api.PutRequest): void {
  if (lease !== 0n && !hasLease(lease)) throw errors.leaseNotFound();
}

/** @throws {EtcdV3Refusal} if the request keeps something of a key that does not exist */
function checkKept({ keys }: Stored, { key, ignore_value, ignore_lease }: api.PutRequest): void {
  if ((ignore_value || ignore_lease) && !keys.get(key)) throw errors.keyNotFound();
}

function put(keys: KeyValues, write: Write, request: api.PutRequest): api.PutResponse {
  const { key, value, lease, ignore_value, ignore_lease } = request;
  const old = keys.get(key);
  write.put(key, ignore_value && old ? old.value : value, ignore_lease && old ? old.lease : lease);
  return { header: { revision: write.revision }, prev_kv: request.prev_kv ? old : undefined };
}

function remove(write: Write, request: api.DeleteRangeRequest): api.DeleteRangeResponse {
  const removed = write.delete(request);
  const header = { revision: write.revision };
  return { header, deleted: BigInt(removed.length), prev_kvs: request.prev_kv ? removed : [] };
}

/** @throws {EtcdV3Refusal} if the lease or the key does not exist */
export function runPut(stored: Stored, request: api.PutRequest): api.PutResponse {
  checkLease(stored, request);
  checkKept(stored, request);
  return stored.keys.write((write) => put(stored.keys, write, request));
}

export const runDelete = ({ keys }: Stored, request: api.DeleteRangeRequest): api.DeleteRangeResponse =>
  keys.write((write) => remove(write, request));

/** A transaction with the branches that it takes. */
interface Path {
  readonly succeeded: boolean;
  readonly operations: readonly { readonly asked: api.RequestOp; readonly inner: Path | undefined }[];
}

/**
 * Runs a transaction. All comparisons, also those of nested transactions, see the store as it was before; ranges see the writes before
 * them.
 * @throws {EtcdV3Refusal} if one of its operations is impossible: nothing is written then
 */
export function runTxn(stored: Stored, request: api.TxnRequest): api.TxnResponse {
  const path = pathOf(stored.keys, request);
  const operations = [...operationsOf(path)];
  checkPossible(stored, operations);
  checkFound(stored.keys, operations);
  return stored.keys.write((write) => {
    const responses = runPath(stored.keys, write, path);
    return { header: { revision: write.revision }, succeeded: path.succeeded, responses };
  });
}

/**
 * Until version 3.5, etcd checks all writes before all reads.
 * @throws {EtcdV3Refusal} if an operation is impossible
 */
function checkPossible(stored: Stored, operations: readonly api.RequestOp[]): void {
  const writes = operations.filter(({ request_put: put }) => put);
  const ordered = stored.version === '3.6' ? operations : [...writes, ...operations];
  for (const { request_put: put, request_range: range } of ordered) {
    if (range) stored.keys.checkReadable(range.revision);
    if (!put) continue;
    // In the other order than for a single put, as in etcd.
    checkKept(stored, put);
    checkLease(stored, put);
  }
}

/** @throws {EtcdV3Refusal} if the ranges together find so many keys that their answer cannot be sent */
function checkFound(keys: KeyValues, operations: readonly api.RequestOp[]): void {
  let found = 0;
  for (const { request_range: range } of operations) if (range) found += keys.count(range);
  if (found > MOST_FOUND) throw errors.tooManyFound(MOST_FOUND);
}

function pathOf(keys: KeyValues, { compare: comparisons, success, failure }: api.TxnRequest): Path {
  const succeeded = comparisons.every((comparison) => isTrue(keys, comparison));
  const operations = (succeeded ? success : failure).map((asked) => ({
    asked,
    inner: asked.request_txn && pathOf(keys, asked.request_txn),
  }));
  return { succeeded, operations };
}

/** Yields the operations of a path, with those of nested transactions. */
function* operationsOf({ operations }: Path): Iterable<api.RequestOp> {
  for (const { asked, inner } of operations) {
    yield asked;
    if (inner) yield* operationsOf(inner);
  }
}

const runPath = (keys: KeyValues, write: Write, { operations }: Path): readonly api.ResponseOp[] =>
  operations.map(({ asked, inner }) => {
    const { request_range: range, request_put: written, request_delete_range: removal } = asked;
    if (range) {
      const { kvs, more, count } = readRange(keys, range);
      return { response_range: { header: { revision: write.revision }, kvs, more, count } };
    }
    if (written) return { response_put: put(keys, write, written) };
    if (removal) return { response_delete_range: remove(write, removal) };
    const path = inner as Path;
    return { response_txn: { header: {}, succeeded: path.succeeded, responses: runPath(keys, write, path) } };
  });

const isTrue = (keys: KeyValues, comparison: api.Compare): boolean => {
  const { kvs } = keys.range(comparison, 0n);
  if (kvs.length > 0) return kvs.every((kv) => holds(comparison, kv));
  // A key that does not exist has no value, not even an empty one.
  return COMPARE_TARGETS[comparison.target] !== 'VALUE' && holds(comparison, MISSING);
};

const MISSING = { version: 0n, create_revision: 0n, mod_revision: 0n, value: '', lease: 0n };

/** Compares one property of a key. One that etcd does not know is always as wanted. */
function holds(comparison: api.Compare, kv: Omit<api.KeyValue, 'key'>): boolean {
  const name = PROPERTIES[comparison.target];
  const order = name === undefined ? 0 : compareProperty(comparison, kv, name);
  switch (COMPARE_RESULTS[comparison.result]) {
    case 'EQUAL':
      return order === 0;
    case 'GREATER':
      return order > 0;
    case 'LESS':
      return order < 0;
    case 'NOT_EQUAL':
      return order !== 0;
    default:
      return true;
  }
}

const PROPERTIES = ['version', 'create_revision', 'mod_revision', 'value', 'lease'] as const;

function compareProperty(
  wanted: api.Compare,
  kv: Omit<api.KeyValue, 'key'>,
  name: (typeof PROPERTIES)[number],
): number {
  if (name === 'value') return compare(kv.value, wanted.value ?? '');
  return compare(kv[name], wanted[name] ?? 0n);
}
