import { isNotCarriedOut } from '../../errors.ts';
import type { GatewayCall, GatewayClient } from '../gateway/gateway.ts';
import { encodeBytes, type Fields, type Header, type Json } from '../gateway/messages.ts';
import { type AppendOptions, type AppendResult, append } from './append.ts';
import { decodeRange, type Neighbours, type V3Entry } from './entry.ts';
import { directoryOf } from './keys.ts';
import { newestBelow } from './ranges.ts';
import { byKey, readEach } from './single-keys.ts';
import { type Guard, isSame, isUnwritten, put, rangeIn, read, removal, responsesIn } from './transaction.ts';

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

/** How to write a marker, if it is unchanged. */
export interface MarkerWrite {
  readonly value: string;
  /** Id of the lease. */
  readonly lease: string;
  /** The revision of the marker's last write; 0: it must not exist. */
  readonly modified: bigint;
}

/** Requests for single keys: entries of queues, and markers. */
export class EntryRequests {
  readonly #gateway: GatewayClient;

  constructor(gateway: GatewayClient) {
    this.#gateway = gateway;
  }

  /** Reads one key. {@link Neighbours.before} is not read. */
  async get(key: string, options: GatewayCall): Promise<Neighbours> {
    return this.#gateway.call('hedged', { lane: 'read', ...options }, async (member) => {
      const answer = await member.ask('/kv/range', { key: encodeBytes(key) });
      const [own] = decodeRange(answer.fields);
      return { ...answer.header, own, before: undefined };
    });
  }

  /**
   * Reads single keys at one revision. Linearizable. Resolves to those that exist, by key.
   * @param keys at most {@link READS_A_TRANSACTION}
   */
  readEach(
    keys: readonly string[],
    options: GatewayCall,
  ): Promise<Header & { readonly entries: ReadonlyMap<string, V3Entry> }> {
    return this.#gateway.call('hedged', { lane: 'read', ...options }, async (member) => {
      const answer = await member.ask('/kv/txn', readEach(keys));
      return { ...answer.header, entries: byKey(answer, keys.length) };
    });
  }

  /** Reads an entry and the one before it, in one transaction. */
  neighbours(key: string, rank: bigint, options: GatewayCall): Promise<Neighbours> {
    const before = { ...newestBelow(directoryOf(key)), max_create_revision: String(rank - 1n), limit: '1' };
    return this.#gateway.call('hedged', { lane: 'read', ...options }, async (member) => {
      const answer = await member.ask('/kv/txn', { success: [read(key), { request_range: before }] });
      const [first, second] = responsesIn(answer, 2);
      const [own] = rangeIn(first);
      const [previous] = rangeIn(second);
      return { ...answer.header, own, before: previous };
    });
  }

  /**
   * Creates the entry unless its key exists, and reads it and the one before it in that transaction. May be sent more than once.
   * @param key the own key, directly below the path of its queue
   * @throws {NotFound} if the lease is gone
   */
  append(key: string, options: AppendOptions): Promise<AppendResult> {
    return append(this.#gateway, key, options);
  }

  /** Deletes a key without a condition: no other entry may ever have this key. May be sent more than once. */
  delete(key: string, options: GatewayCall): Promise<void> {
    return this.#gateway.call('hedged', options, async (member) => {
      await member.ask('/kv/deleterange', { key: encodeBytes(key) });
    });
  }

  /**
   * Removes an entry if its value and rank are unchanged. Also resolves if there is no such entry. May be sent more than once. If more
   * than one request may have been carried out (`sent`), an earlier one may have removed the entry.
   */
  remove(
    key: string,
    guard: RemovalGuard,
    options: GatewayCall,
  ): Promise<Header & { readonly isRemoved: boolean; readonly sent: number }> {
    let sent = 0;
    return this.#gateway.call('hedged', options, async (member) => {
      sent += 1;
      try {
        const answer = await member.ask('/kv/txn', encodeRemove(key, guard));
        return { ...answer.header, isRemoved: answer.fields.flag('succeeded'), sent };
      } catch (error) {
        if (isNotCarriedOut(error)) sent -= 1;
        throw error;
      }
    });
  }

  /**
   * Attaches an entry to another lease by writing it again, if it is unchanged; its rank stays. `moved` is the revision of that
   * write; undefined if the entry has changed or is gone: `present` is then what the key has. May be sent more than once.
   * @throws {NotFound} if the lease is gone
   */
  move(
    key: string,
    target: Move,
    options: GatewayCall,
  ): Promise<Header & { readonly moved: bigint | undefined; readonly present?: V3Entry | undefined }> {
    return this.#gateway.call('hedged', options, async (member) => {
      const answer = await member.ask('/kv/txn', encodeMove(key, target));
      const { header } = answer;
      if (answer.fields.flag('succeeded')) return { ...header, moved: header.revision };
      const [only] = responsesIn(answer, 1);
      const [present] = rangeIn(only);
      // An earlier request of this call may have been carried out.
      const { rank, value, lease } = target;
      const done = present?.rank === rank && present.value === value && present.lease === lease;
      return { ...header, moved: done ? present.modified : undefined, present };
    });
  }

  /**
   * Writes a marker if it is unchanged. Resolves to the present marker. May be sent more than once.
   * @throws {NotFound} if the lease is gone
   */
  write(key: string, target: MarkerWrite, options: GatewayCall): Promise<V3Entry | undefined> {
    return this.#gateway.call('hedged', options, async (member) => {
      const answer = await member.ask('/kv/txn', encodeWrite(key, target));
      const [last] = responsesIn(answer, answer.fields.flag('succeeded') ? 2 : 1).slice(-1) as [Fields];
      return rangeIn(last)[0];
    });
  }
}

const encodeRemove = (key: string, { modified, ...guard }: RemovalGuard): Json => ({
  // Only one write has this revision.
  compare: modified === undefined ? isSame(key, guard) : [isUnwritten(key, modified)],
  success: [removal(key)],
});

/** If the entry has changed, reads it. */
const encodeMove = (key: string, { lease, modified, ...guard }: Move): Json => ({
  compare: [...isSame(key, guard), isUnwritten(key, modified)],
  success: [put(key, guard.value, lease)],
  failure: [read(key)],
});

/** Reads the marker in any case. */
const encodeWrite = (key: string, { value, lease, modified }: MarkerWrite): Json => ({
  compare: [isUnwritten(key, modified)],
  success: [put(key, value, lease), read(key)],
  failure: [read(key)],
});
