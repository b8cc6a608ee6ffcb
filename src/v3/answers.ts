import type { Entry } from '../recipe/store.ts';
import type { Answer } from './client.ts';
import { decodeRange, type Fields, type KeyValue } from './messages.ts';

/** An entry on etcd v3. */
export interface V3Entry extends Entry {
  /** Id of its lease; undefined if it has none. */
  readonly lease: string | undefined;
  /** The revision of its last write. */
  readonly modified: bigint;
}

/** The cluster that an answer is from, and its revision. */
export interface Stamp {
  readonly clusterId: string | undefined;
  /**
   * Revision of the store at the time of the answer. If the answer shows that the lock is held, the revision is greater than that
   * of every earlier hold that this one excludes.
   */
  readonly revision: bigint;
}

/** Keys that begin with a prefix, in the order of the answer. */
export interface Listing extends Stamp {
  readonly entries: readonly V3Entry[];
}

/** The own entry, and the key created right before it. */
export interface Neighbours extends Stamp {
  /** undefined if the key does not exist. */
  readonly own: V3Entry | undefined;
  /** The newest key older than the own one. It may belong to another lock, whose name begins with this lock's name and a "/". */
  readonly before: V3Entry | undefined;
}

/** Result of an append. */
export interface Appended extends Neighbours {
  readonly own: V3Entry;
  /** Whether the key existed already, normally by an earlier append. {@link Neighbours.before} is then not known. */
  readonly existed: boolean;
  /** Whether this request has removed the entry that it was to replace. */
  readonly replaced: boolean;
  /** Number of keys in the queue, including those of locks whose names begin with this lock's name and a "/". */
  readonly count: number;
  /** All these keys, if the request asked for them. */
  readonly all: readonly V3Entry[] | undefined;
}

/** Result of a renewal. */
export interface LeaseRenewal extends Stamp {
  /** Seconds for which the store keeps the lease, counted from `sentAt`. */
  readonly granted: number;
  /** When the keep-alive was sent: milliseconds on the monotonic clock. */
  readonly sentAt: number;
  readonly member: string;
  /** The requested entries that still exist, by key. */
  readonly entries: ReadonlyMap<string, V3Entry>;
}

export const stampOf = ({ header: { clusterId, revision } }: Answer): Stamp => ({ clusterId, revision });

/**
 * Returns the responses in the answer to a transaction. A nested transaction is replaced by its responses.
 * @throws {EtcdUnusableAnswer} if the number of responses is not `count`
 */
export function responsesIn<N extends number>(answer: Answer, count: N): Responses<N> {
  const responses = answer.fields.list('responses').flatMap(allWithin);
  if (responses.length === count) return responses as Responses<N>;
  throw answer.unusable(`has ${responses.length} responses, expected ${count}`);
}

/** Returns the response itself or, for a nested transaction, its responses. */
const allWithin = (response: Fields): Fields[] => response.optional('response_txn')?.list('responses') ?? [response];

type Responses<N> = N extends 1 ? [Fields] : N extends 2 ? [Fields, Fields] : Fields[];

/** Returns the entries in the response to a range of a transaction. */
export const rangeIn = (response: Fields): V3Entry[] => decodeRange(response.message('response_range')).map(entryOf);

/** Returns the entries in the answer to a transaction of `count` ranges, by key. */
export const byKey = (answer: Answer, count: number): ReadonlyMap<string, V3Entry> =>
  new Map(responsesIn(answer, count).flatMap((response) => rangeIn(response).map((entry) => [entry.key, entry])));

export const entryOf = ({ key, value, createRevision, modRevision, lease }: KeyValue): V3Entry => ({
  key,
  value,
  rank: createRevision,
  ttl: undefined,
  lease,
  modified: modRevision,
});
