import type { EtcdVersion } from '../../version.ts';
import { compare } from '../bytes.ts';
import * as errors from '../errors.ts';
import type { KeyValue, RangeRequest } from '../messages.ts';
import type { KeyValues } from './key-values.ts';

export const SORT_ORDERS = ['NONE', 'ASCEND', 'DESCEND'] as const;
export const SORT_TARGETS = ['KEY', 'VERSION', 'CREATE', 'MOD', 'VALUE'] as const;
const [NONE, , DESCEND] = [0, 1, 2];

/** What a range request finds, without its header. */
export interface Ranged {
  readonly kvs: readonly KeyValue[];
  readonly more: boolean;
  readonly count: bigint;
}

/** @throws {EtcdV3Refusal} if the request has no key, or, from etcd 3.6 on, an unknown order */
export function checkRange({ key, sort_order: order, sort_target: target }: RangeRequest, version: EtcdVersion): void {
  if (key === '') throw errors.emptyKey();
  const isKnown = SORT_ORDERS[order] !== undefined && SORT_TARGETS[target] !== undefined;
  if (!isKnown && version === '3.6') throw errors.invalidSortOption();
}

/** @throws {EtcdV3Refusal} if the revision is in the future, or was compacted */
export function readRange(keys: KeyValues, request: RangeRequest): Ranged {
  const { sort_order: order, sort_target: target, limit } = request;
  const isWhole = order !== NONE || isFiltered(request);
  const most = limit > 0n ? Number(limit) : Number.POSITIVE_INFINITY;
  const { kvs: found, count } = keys.range(request, request.revision, isWhole ? undefined : most + 1);
  if (request.count_only) return { kvs: [], more: false, count: BigInt(count) };
  let kvs = found.filter((kv) => isWanted(kv, request));
  const by = SORT_BY[target];
  const more = kvs.length > most;
  if (by && (target !== 0 || order !== NONE))
    kvs = firstOf(kvs, order === DESCEND ? (one, other) => by(other, one) : by, most);
  kvs = kvs.slice(0, most);
  if (request.keys_only) kvs = kvs.map((kv) => ({ ...kv, value: '' }));
  return { kvs, more, count: BigInt(count) };
}

/** Most keys that are chosen from others without sorting all. */
const FEW = 16;

/** Returns the first keys in an order. Those that are equal in it stay in the order that they have. */
function firstOf(kvs: KeyValue[], order: Order, most: number): KeyValue[] {
  if (most > FEW) return kvs.sort(order);
  const first: KeyValue[] = [];
  for (const kv of kvs) {
    let at = first.length;
    while (at > 0 && order(first[at - 1] as KeyValue, kv) > 0) at -= 1;
    if (at < most) first.splice(at, 0, kv);
    if (first.length > most) first.pop();
  }
  return first;
}

type Order = (one: KeyValue, other: KeyValue) => number;

/** By number of the target. */
const SORT_BY: readonly Order[] = [
  (one, other) => compare(one.key, other.key),
  (one, other) => compare(one.version, other.version),
  (one, other) => compare(one.create_revision, other.create_revision),
  (one, other) => compare(one.mod_revision, other.mod_revision),
  (one, other) => compare(one.value, other.value),
];

const isFiltered = (request: RangeRequest): boolean =>
  request.min_mod_revision !== 0n ||
  request.max_mod_revision !== 0n ||
  request.min_create_revision !== 0n ||
  request.max_create_revision !== 0n;

const isWanted = (kv: KeyValue, request: RangeRequest): boolean =>
  isBetween(kv.mod_revision, request.min_mod_revision, request.max_mod_revision) &&
  isBetween(kv.create_revision, request.min_create_revision, request.max_create_revision);

/** 0 is no limit. */
const isBetween = (revision: bigint, least: bigint, most: bigint): boolean =>
  (least === 0n || revision >= least) && (most === 0n || revision <= most);
