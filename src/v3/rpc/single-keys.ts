/** Transactions that read single keys at one revision. */
import type { GatewayAnswer } from '../gateway/gateway.ts';
import type { Json } from '../gateway/messages.ts';
import type { V3Entry } from './entry.ts';
import { rangeIn, read, responsesIn } from './transaction.ts';

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

/** Returns the transaction. More than {@link READS_A_TRANSACTION} keys are read by nested transactions. */
export function readEach(keys: readonly string[]): Json {
  if (keys.length <= READS_A_TRANSACTION) return { success: keys.map(read) };
  const inner: Json[] = [];
  for (let from = 0; from < keys.length; from += READS_A_TRANSACTION)
    inner.push({ request_txn: readEach(keys.slice(from, from + READS_A_TRANSACTION)) });
  return { success: inner };
}

/** Returns the entries in the answer to {@link readEach} of `count` keys, by key. */
export const byKey = (answer: GatewayAnswer, count: number): ReadonlyMap<string, V3Entry> =>
  new Map(responsesIn(answer, count).flatMap((response) => rangeIn(response).map((entry) => [entry.key, entry])));
