/** Encodes the requests to `/kv/range` and `/kv/txn` for lock queues. */
import { encodeBytes, endOfPrefix, type Json, startOfPrefix } from './messages.ts';

/** Condition of a write or a removal: the entry still has this value and this rank. */
export interface Guard {
  readonly value: string;
  readonly rank: bigint;
}

/** The entry to remove, if it is unchanged, when another one is appended. */
export interface Replaced extends Guard {
  readonly key: string;
}

/** Condition of a removal. */
export interface RemovalGuard extends Guard {
  /** The revision of the entry's last write; undefined: any. */
  readonly modified?: bigint | undefined;
}

/** How to write an entry again with another lease, if it is unchanged. */
export interface Move extends Guard {
  /** The revision of its last write: a request that is carried out late must not undo a later write. */
  readonly modified: bigint;
  /** Id of the new lease; undefined: none. */
  readonly lease: string | undefined;
}

type AppendParts = Readonly<Record<'compare' | 'success' | 'failure', readonly Json[]>>;

const OLDEST = { sort_target: 'CREATE', sort_order: 'ASCEND' };
const NEWEST = { sort_target: 'CREATE', sort_order: 'DESCEND' };

/** Reads all keys that begin with the prefix, in the order of their creation. */
export const below = (prefix: string): Json => ({
  key: startOfPrefix(prefix),
  range_end: endOfPrefix(prefix),
  ...OLDEST,
});

/** The keys that a page of a listing comes after. */
export interface Preceding {
  /** The last of them. */
  readonly last: string;
  /** The revision at which they were read. */
  readonly revision: bigint;
}

/**
 * Reads the keys that begin with the prefix, in their own order, at most `count`. That is the only order in which etcd need not read
 * them all.
 */
export const pageBelow = (prefix: string, count: number, after?: Preceding): Json => ({
  key: after ? followerOf(after.last) : startOfPrefix(prefix),
  range_end: endOfPrefix(prefix),
  limit: String(count),
  ...(after ? { revision: String(after.revision) } : {}),
});

/** Returns the smallest key after this one, in base64. */
const followerOf = (key: string): string => encodeBytes(`${key}\0`);

/** Reads the keys that begin with the prefix and were created first, at most `count`. */
export const firstBelow = (prefix: string, count: number): Json => ({ ...below(prefix), limit: String(count) });

/**
 * Creates an entry unless its key exists, then reads the two newest keys of its queue: the new entry and the one before it. If
 * the key exists, also reads the entry itself, because newer keys may follow it.
 * @param whole whether to read the whole queue instead of the two newest keys
 */
export function append(key: string, value: string, lease: string | undefined, whole: boolean): AppendParts & Json {
  const own = encodeBytes(key);
  const queue = { ...below(prefixOf(key)), ...NEWEST };
  const newest = { request_range: whole ? queue : { ...queue, limit: '2' } };
  return {
    compare: [{ key: own, target: 'CREATE', result: 'EQUAL', create_revision: '0' }],
    success: [put(key, value, lease), newest],
    failure: [read(key), newest],
  };
}

/**
 * Returns an {@link append} that first removes an old entry. If the old entry has changed or is gone, the request writes nothing.
 * A request that is carried out twice, or late, must not create the new entry again.
 */
export function replacing(old: Replaced, { compare, success, failure }: AppendParts): Json {
  const remove = { request_delete_range: { key: encodeBytes(old.key) } };
  return {
    compare: [...compare, ...isSame(old.key, old)],
    success: [remove, ...success],
    failure,
  };
}

/** Reads the keys that begin with the prefix and were created at a revision. */
export const createdAt = (prefix: string, revision: bigint): Json => ({
  ...below(prefix),
  min_create_revision: String(revision),
  max_create_revision: String(revision),
});

/** Reads an entry and the one created last before it. */
export function neighbours(key: string, rank: bigint): Json {
  const earlier = { ...below(prefixOf(key)), ...NEWEST, max_create_revision: String(rank - 1n), limit: '1' };
  return { success: [read(key), { request_range: earlier }] };
}

/** Maximum number of keys that one transaction reads without nested transactions. */
export const READS_A_TRANSACTION = 100;

/**
 * Maximum number of keys for {@link readEach}. etcd's default limit is 128 operations. A nested transaction may use only the
 * operations that the outer transaction leaves.
 */
const MOST_READS = (128 - READS_A_TRANSACTION) * READS_A_TRANSACTION;

/** Maximum bytes of keys for {@link readEach}. etcd writes nested transactions to its raft log, where the limit is 1.5 MiB. */
const MOST_BYTES = 512 * 1024;

/** Splits keys into lists that are short enough for {@link readEach}. */
export function* readable(keys: readonly string[]): Iterable<readonly string[]> {
  let some: string[] = [];
  let bytes = 0;
  for (const key of keys) {
    const size = Buffer.byteLength(key);
    if (some.length === MOST_READS || (some.length > 0 && bytes + size > MOST_BYTES)) {
      yield some;
      some = [];
      bytes = 0;
    }
    some.push(key);
    bytes += size;
  }
  if (some.length > 0) yield some;
}

/** Reads single keys at one revision. More than {@link READS_A_TRANSACTION} keys are read by nested transactions. */
export function readEach(keys: readonly string[]): Json {
  if (keys.length <= READS_A_TRANSACTION) return { success: keys.map(read) };
  const inner: Json[] = [];
  for (let from = 0; from < keys.length; from += READS_A_TRANSACTION)
    inner.push({ request_txn: readEach(keys.slice(from, from + READS_A_TRANSACTION)) });
  return { success: inner };
}

/** Removes an entry if it is unchanged. */
export const remove = (key: string, { modified, ...guard }: RemovalGuard): Json => ({
  compare: [...isSame(key, guard), ...(modified === undefined ? [] : [isUnwritten(key, modified)])],
  success: [{ request_delete_range: { key: encodeBytes(key) } }],
});

/** Writes an entry again if it is unchanged; its rank stays. Else reads the entry. */
export const move = (key: string, { lease, modified, ...guard }: Move): Json => ({
  compare: [...isSame(key, guard), isUnwritten(key, modified)],
  success: [put(key, guard.value, lease)],
  failure: [read(key)],
});

/** How to write a marker, if it is unchanged. */
export interface Write {
  readonly value: string;
  /** Id of the lease. */
  readonly lease: string;
  /** The revision of the marker's last write; 0: it must not exist. */
  readonly modified: bigint;
}

/** Writes a marker if it is unchanged. Reads it in any case. */
export const write = (key: string, { value, lease, modified }: Write): Json => ({
  compare: [isUnwritten(key, modified)],
  success: [put(key, value, lease), read(key)],
  failure: [read(key)],
});

/** The directory of a key, with the "/" at its end. */
const prefixOf = (key: string): string => key.slice(0, key.lastIndexOf('/') + 1);

const read = (key: string): Json => ({ request_range: { key: encodeBytes(key) } });

const put = (key: string, value: string, lease: string | undefined): Json => ({
  request_put: { key: encodeBytes(key), value: encodeBytes(value), ...(lease === undefined ? {} : { lease }) },
});

const isUnwritten = (key: string, modified: bigint): Json => ({
  key: encodeBytes(key),
  target: 'MOD',
  result: 'EQUAL',
  mod_revision: String(modified),
});

const isSame = (key: string, { value, rank }: Guard): readonly Json[] => [
  { key: encodeBytes(key), target: 'VALUE', result: 'EQUAL', value: encodeBytes(value) },
  { key: encodeBytes(key), target: 'CREATE', result: 'EQUAL', create_revision: String(rank) },
];
