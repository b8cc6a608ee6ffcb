import { isNotCarriedOut } from '../../errors.ts';
import type { AskedMember, GatewayAnswer, GatewayCall, GatewayClient } from '../gateway/gateway.ts';
import { encodeBytes, type Fields, type Json } from '../gateway/messages.ts';
import type { Neighbours, V3Entry } from './entry.ts';
import { directoryOf } from './keys.ts';
import { newestBelow } from './ranges.ts';
import { type Guard, isSame, put, rangeIn, read, removal, responsesIn } from './transaction.ts';

/** The entry to remove, if it is unchanged, when another one is appended. */
export interface Replaced extends Guard {
  readonly key: string;
}

export interface AppendOptions extends GatewayCall {
  readonly value: string;
  /** Id of the lease; undefined: the entry never expires. */
  readonly lease: string | undefined;
  /** Whether to read the whole queue, and not only the entry before the own one. */
  readonly whole: boolean;
  /** Called when a request for this entry is sent. Until it is answered, it may still be carried out. */
  readonly onSent?: () => void;
  /** Called when the outcome of one of these requests is known. May also be called for a request of an earlier call. */
  readonly onAnswered?: () => void;
  /** Ids of the leases that these requests use; undefined: no lease. Default: only `lease`. */
  readonly leases?: ReadonlySet<string | undefined>;
  /** An entry to remove in the same transaction. */
  readonly replacing?: Replaced | undefined;
}

/** Result of an append. */
export interface AppendResult extends Neighbours {
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

/** See {@link EntryRequests.append}. */
export function append(gateway: GatewayClient, key: string, options: AppendOptions): Promise<AppendResult> {
  const { value, lease, whole, onSent, onAnswered, leases = new Set([lease]), replacing, ...call } = options;
  const plain = encodeAppend(key, value, lease, whole);
  const ask = async (member: AskedMember, transaction: Json, replaces: boolean): Promise<AppendResult | undefined> => {
    onSent?.();
    const answer = await member.ask('/kv/txn', transaction).catch((error: unknown) => {
      if (isNotCarriedOut(error)) onAnswered?.();
      throw error;
    });
    const result = decodeAppend(answer, key, whole, replaces);
    onAnswered?.();
    // With such a lease, the entry was created by one of the unanswered requests.
    const isOwn = result?.own.value === value && result.own.lease !== undefined && leases.has(result.own.lease);
    if (result?.existed && isOwn) onAnswered?.();
    return result;
  };
  return gateway.call('hedged', call, async (member) => {
    const replaced = replacing && (await ask(member, encodeReplacing(replacing, plain), true));
    return replaced ?? ((await ask(member, plain, false)) as AppendResult);
  });
}

type AppendParts = Readonly<Record<'compare' | 'success' | 'failure', readonly Json[]>>;

/**
 * Creates an entry unless its key exists, then reads the two newest keys of its queue: the new entry and the one before it. If
 * the key exists, also reads the entry itself, because newer keys may follow it.
 * @param whole whether to read the whole queue instead of the two newest keys
 */
function encodeAppend(key: string, value: string, lease: string | undefined, whole: boolean): AppendParts & Json {
  const queue = newestBelow(directoryOf(key));
  const newest = { request_range: whole ? queue : { ...queue, limit: '2' } };
  return {
    compare: [{ key: encodeBytes(key), target: 'CREATE', result: 'EQUAL', create_revision: '0' }],
    success: [put(key, value, lease), newest],
    failure: [read(key), newest],
  };
}

/**
 * Like {@link encodeAppend}, but first removes an old entry. If the old entry has changed or is gone, writes nothing. A request that
 * is carried out twice, or late, must not create the new entry again.
 */
const encodeReplacing = (old: Replaced, { compare, success, failure }: AppendParts): Json => ({
  compare: [...compare, ...isSame(old.key, old)],
  success: [removal(old.key), ...success],
  failure,
});

/**
 * Returns undefined if the entry to replace has changed or is gone: then etcd has written nothing.
 * @param replaces whether the request was to replace an entry
 */
function decodeAppend(answer: GatewayAnswer, key: string, whole: boolean, replaces: boolean): AppendResult | undefined {
  const existed = !answer.fields.flag('succeeded');
  // The first response of a replacing transaction is that of the removal: skip it.
  const replaced = replaces && !existed;
  const [first, second] = responsesIn(answer, replaced ? 3 : 2).slice(-2) as [Fields, Fields];
  const entries = rangeIn(second);
  const [latest, before] = entries;
  const [own] = existed ? rangeIn(first) : [latest];
  const count = Number(second.message('response_range').integer('count'));
  if (replaces && existed && !own) return undefined;
  if (own?.key !== key) throw answer.unusable('does not contain the key of the new entry');
  return { ...answer.header, own, before, existed, replaced, count, all: whole ? entries : undefined };
}
