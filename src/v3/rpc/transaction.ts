/** Parts of the transactions about entries: conditions, operations and responses. */
import type { GatewayAnswer } from '../gateway/gateway.ts';
import { encodeBytes, type Fields, type Json } from '../gateway/messages.ts';
import { decodeRange, type V3Entry } from './entry.ts';

/** Condition of a write or a removal: the entry still has this value and this rank. */
export interface Guard {
  readonly value: string;
  readonly rank: bigint;
}

export const isSame = (key: string, { value, rank }: Guard): readonly Json[] => [
  { key: encodeBytes(key), target: 'VALUE', result: 'EQUAL', value: encodeBytes(value) },
  { key: encodeBytes(key), target: 'CREATE', result: 'EQUAL', create_revision: String(rank) },
];

/** @param modified the revision of the last write; 0: the key does not exist */
export const isUnwritten = (key: string, modified: bigint): Json => ({
  key: encodeBytes(key),
  target: 'MOD',
  result: 'EQUAL',
  mod_revision: String(modified),
});

export const read = (key: string): Json => ({ request_range: { key: encodeBytes(key) } });

export const put = (key: string, value: string, lease: string | undefined): Json => ({
  request_put: { key: encodeBytes(key), value: encodeBytes(value), ...(lease === undefined ? {} : { lease }) },
});

export const removal = (key: string): Json => ({ request_delete_range: { key: encodeBytes(key) } });

/**
 * Returns the responses in the answer to a transaction. A nested transaction is replaced by its responses.
 * @throws {EtcdUnusableAnswer} if the number of responses is not `count`
 */
export function responsesIn<N extends number>(answer: GatewayAnswer, count: N): Responses<N> {
  const responses = answer.fields.list('responses').flatMap(allWithin);
  if (responses.length === count) return responses as Responses<N>;
  throw answer.unusable(`has ${responses.length} responses, expected ${count}`);
}

/** Returns the response itself or, for a nested transaction, its responses. */
const allWithin = (response: Fields): Fields[] => response.optional('response_txn')?.list('responses') ?? [response];

type Responses<N> = N extends 1 ? [Fields] : N extends 2 ? [Fields, Fields] : Fields[];

/** Returns the entries in the response to a range of a transaction. */
export const rangeIn = (response: Fields): V3Entry[] => decodeRange(response.message('response_range'));
