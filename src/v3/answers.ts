import type { Entry } from '../recipe/store.ts';
import type { Answer } from './client.ts';
import { decodeRange, type Fields, type KeyValue } from './messages.ts';

/** An entry as a read has shown it. */
export interface V3Entry extends Entry {
  readonly rawKey: string;
  readonly lease: string | undefined;
  /** The revision of its last write. */
  readonly modified: bigint;
}

/** When and where an answer was made. */
export interface Made {
  readonly clusterId: string | undefined;
  /** The store's revision in the answer: greater than that of every earlier hold, if the answer shows a hold. */
  readonly revision: bigint;
}

/** All entries of a queue. */
export interface Listing extends Made {
  readonly entries: readonly V3Entry[];
}

/** The own entry and the one right before it. */
export interface Glance extends Made {
  /** undefined if there is no such key. */
  readonly own: V3Entry | undefined;
  /** The key created last before the own one: an entry of this queue, or of one whose name begins with this queue's. */
  readonly before: V3Entry | undefined;
}

export interface Appended extends Glance {
  readonly own: V3Entry;
  /** Whether the key existed already, because of an earlier append. {@link Glance.before} is then not known. */
  readonly existed: boolean;
  /** Whether this request has removed the entry that it was to replace. */
  readonly replaced: boolean;
  /** Number of keys in the queue, and in those of locks whose names begin with this one's. */
  readonly count: number;
  /** All of these keys, if they were asked for. */
  readonly all: readonly V3Entry[] | undefined;
}

/** The outcome of a renewal. */
export interface LeaseRenewal extends Made {
  /** Seconds for which the store keeps the lease, counted from `sentAt`. */
  readonly granted: number;
  readonly sentAt: number;
  readonly member: string;
  /** The entries that are there, by key. */
  readonly entries: ReadonlyMap<string, V3Entry>;
}

export const madeOf = ({ header: { clusterId, revision } }: Answer): Made => ({ clusterId, revision });

/** Returns the answers to the requests of a transaction, and of those inside it, of which there are so many. */
export function responsesIn<N extends number>(answer: Answer, count: N): Responses<N> {
  const responses = answer.fields.list('responses').flatMap(allWithin);
  if (responses.length === count) return responses as Responses<N>;
  throw answer.unusable(`has ${responses.length} of ${count} responses`);
}

/** Returns a response, or those of the transaction inside. */
const allWithin = (response: Fields): Fields[] => response.optional('response_txn')?.list('responses') ?? [response];

type Responses<N> = N extends 1 ? [Fields] : N extends 2 ? [Fields, Fields] : Fields[];

/** Returns the keys of a range within a transaction's answer. */
export const rangeIn = (response: Fields): V3Entry[] => decodeRange(response.message('response_range')).map(entryOf);

/** Returns the keys of all ranges within the answer to a transaction of so many. */
export const byKey = (answer: Answer, count: number): ReadonlyMap<string, V3Entry> =>
  new Map(responsesIn(answer, count).flatMap((response) => rangeIn(response).map((entry) => [entry.key, entry])));

export const entryOf = ({ key, rawKey, value, createRevision, modRevision, lease }: KeyValue): V3Entry => ({
  key,
  rawKey,
  value,
  rank: createRevision,
  ttl: undefined,
  lease,
  modified: modRevision,
});
