/** Encodes ranges of keys, for reads and watches. */
import { toBytes } from '../../http/bytes.ts';
import { encodeBytes, type Json } from '../gateway/messages.ts';

/** The byte 0 in base64. As both start and end of a range, it selects all keys. */
const ALL = Buffer.from([0]).toString('base64');

/** Returns the first key that can begin with `prefix`, in base64. */
export const startOfPrefix = (prefix: string): string => (prefix === '' ? ALL : encodeBytes(prefix));

/** Returns the first key after all keys that begin with `prefix`, in base64. */
export function endOfPrefix(prefix: string): string {
  if (prefix === '') return ALL;
  const bytes = toBytes(prefix);
  // No valid UTF-8 ends with the byte 255, so the last byte can be increased.
  bytes[bytes.length - 1] = (bytes.at(-1) ?? 0) + 1;
  return bytes.toString('base64');
}

/** All keys that begin with the prefix. */
export const below = (prefix: string): Json => ({ key: startOfPrefix(prefix), range_end: endOfPrefix(prefix) });

/** All keys that begin with the prefix, in the order of their creation. */
export const oldestBelow = (prefix: string): Json => ({
  ...below(prefix),
  sort_target: 'CREATE',
  sort_order: 'ASCEND',
});

/** All keys that begin with the prefix, the newest first. */
export const newestBelow = (prefix: string): Json => ({
  ...below(prefix),
  sort_target: 'CREATE',
  sort_order: 'DESCEND',
});

/** The keys that begin with the prefix and were created first, at most `count`. */
export const firstBelow = (prefix: string, count: number): Json => ({ ...oldestBelow(prefix), limit: String(count) });

/** The keys that begin with the prefix and were created at a revision. */
export const createdAt = (prefix: string, revision: bigint): Json => ({
  ...oldestBelow(prefix),
  min_create_revision: String(revision),
  max_create_revision: String(revision),
});

/** The keys that a page of a listing comes after. */
export interface Preceding {
  /** The last of them. */
  readonly last: string;
  /** The revision at which they were read. */
  readonly revision: bigint;
}

/**
 * The keys that begin with the prefix, in their own order, at most `count`. That is the only order in which etcd need not read them
 * all.
 */
export const pageBelow = (prefix: string, count: number, after?: Preceding): Json => ({
  key: after ? followerOf(after.last) : startOfPrefix(prefix),
  range_end: endOfPrefix(prefix),
  limit: String(count),
  ...(after ? { revision: String(after.revision) } : {}),
});

/** Returns the smallest key after this one, in base64. */
const followerOf = (key: string): string => encodeBytes(`${key}\0`);
