import { Scope } from '../cancellation.ts';
import { EtcdConnectionFailed, EtcdException } from '../errors.ts';
import type { Entry } from '../recipe/store.ts';
import type { Answer, CallOptions, Member, V3Client } from './client.ts';
import { FailedPrecondition, NotFound } from './errors.ts';
import { decodeRange, encodeBytes, type Fields, type Json, type KeyValue } from './messages.ts';
import * as transactions from './transactions.ts';
import { decodeWatchMessage, JsonObjects, type WatchMessage, watchDeletion } from './watch.ts';

/** Ends a watch that has shown what it was for. */
const OVER = new Error('the watch has shown a change');

/** Seconds that a read or an append may take before another member is asked. */
const HEDGE_AFTER = 1;

/** Most keys that one transaction reads: etcd's default limit is 128 operations. */
export const KEYS_A_READ = 100;

/** An entry as a read has shown it. */
export interface V3Entry extends Entry {
  readonly rawKey: string;
  readonly lease: string | undefined;
  /** The revision of its last write. */
  readonly modified: bigint;
}

/** When and where an answer was made. */
interface Made {
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

export interface AppendOptions extends CallOptions {
  readonly value: string;
  /** Id of the lease; undefined: the entry never expires. */
  readonly lease: string | undefined;
  /** Whether to read the whole queue, and not just the entry before. */
  readonly whole: boolean;
  /** Counts the requests for this entry that were sent and not answered: each may still be carried out. */
  readonly unanswered: { count: number };
  /** An entry to remove in the same transaction. */
  readonly replacing?: transactions.Replaced | undefined;
}

export interface ChangeOptions extends Omit<WatchOptions, 'until'> {
  /** The key as the store has it. */
  readonly rawKey: string;
}

export interface WatchOptions extends CallOptions {
  /** The revision of the first change that counts. */
  readonly from: bigint;
  /** Gets each message. Returns whether the watch has shown what it was for. */
  readonly until: (said: WatchMessage) => boolean;
}

/** The requests that queues of locks are made of. Each has a key, or the path of a queue, as its first argument. */
export class LockRequests {
  readonly #client: V3Client;

  constructor(client: V3Client) {
    this.#client = client;
  }

  /** Reads all entries of a queue. Linearizable. */
  read(path: string, options: CallOptions): Promise<Listing> {
    return this.readPrefix(`${path}/`, options);
  }

  /** Reads all keys that begin with a prefix, in the order of their creation. */
  readPrefix(prefix: string, options: CallOptions): Promise<Listing> {
    return this.#client.call('hedged', { lane: 'read', ...options }, async (member) => {
      const answer = await member.ask('/kv/range', transactions.below(prefix));
      return { ...madeOf(answer), entries: decodeRange(answer.fields).map(entryOf) };
    });
  }

  /** Reads the key created first in a queue, with the seconds that it has left. */
  first(path: string, options: CallOptions): Promise<V3Entry | undefined> {
    return this.#client.call('hedged', { lane: 'read', ...options }, async (member) => {
      const { fields } = await member.ask('/kv/range', transactions.firstBelow(`${path}/`));
      const [first] = decodeRange(fields).map(entryOf);
      return first && { ...first, ttl: await timeToLive(member, first.lease) };
    });
  }

  /** Adds to each entry the seconds that it has left: one request for each of their leases. */
  withTtls(entries: readonly V3Entry[], options: CallOptions): Promise<readonly V3Entry[]> {
    if (entries.every(({ lease }) => lease === undefined)) return Promise.resolve(entries);
    return this.#client.call('hedged', { lane: 'read', ...options }, async (member) => {
      const ttls = new Map<string | undefined, number | undefined>();
      for (const { lease } of entries) if (!ttls.has(lease)) ttls.set(lease, await timeToLive(member, lease));
      return entries.map((entry) => ({ ...entry, ttl: ttls.get(entry.lease) }));
    });
  }

  /** Reads one key. */
  async get(key: string, options: CallOptions): Promise<Glance> {
    return this.#client.call('hedged', { lane: 'read', ...options }, async (member) => {
      const answer = await member.ask('/kv/range', { key: encodeBytes(key) });
      const [own] = decodeRange(answer.fields).map(entryOf);
      return { ...madeOf(answer), own, before: undefined };
    });
  }

  /**
   * Reads keys, each by itself, at one revision. Linearizable. Resolves to the entries that are there, by key.
   * @param keys at most {@link KEYS_A_READ}
   */
  readEach(keys: readonly string[], options: CallOptions): Promise<Made & Pick<LeaseRenewal, 'entries'>> {
    return this.#client.call('hedged', { lane: 'read', ...options }, async (member) => {
      const answer = await member.ask('/kv/txn', transactions.readEach(keys));
      const { length } = answer.fields.list('responses');
      // A key that the answer leaves out would look lost.
      if (length !== keys.length) throw answer.unusable(`has ${length} of ${keys.length} responses`);
      return { ...madeOf(answer), entries: byKey(answer) };
    });
  }

  /**
   * Creates the entry unless its key exists, and reads it and the one before it, in one transaction. May be sent more than once.
   * @param key the own key, directly below the path of its queue
   * @throws {NotFound} if the lease is gone
   */
  append(key: string, { value, lease, whole, unanswered, replacing, ...options }: AppendOptions): Promise<Appended> {
    const plain = transactions.append(key, value, lease, whole);
    /** Resolves to undefined if the entry to be replaced is not the same any more: then nothing was done. */
    const ask = async (member: Member, transaction: Json, replaces: boolean): Promise<Appended | undefined> => {
      unanswered.count += 1;
      const answer = await member.ask('/kv/txn', transaction).catch((error: unknown) => {
        if (error instanceof EtcdException && !error.outcomeUnknown) unanswered.count -= 1;
        throw error;
      });
      const existed = !answer.fields.flag('succeeded');
      const replaced = replaces && !existed;
      const [first, second] = answer.fields.list('responses').slice(replaced ? 1 : 0);
      const entries = rangeIn(second);
      const [latest, before] = entries;
      const [present] = existed ? rangeIn(first) : [latest];
      const count = Number(second?.message('response_range').integer('count') ?? 0);
      const isUnchanged = replaces && existed && !present;
      if (!isUnchanged && present?.key !== key) throw answer.unusable('does not show the key that it created');
      unanswered.count -= 1;
      if (!present) return undefined;
      // The key exists because one of the unanswered requests was carried out.
      if (existed && unanswered.count > 0) unanswered.count -= 1;
      const all = whole ? entries : undefined;
      return { ...madeOf(answer), own: present, before, existed, replaced, count, all };
    };
    return this.#client.call('safe', { attemptTimeout: HEDGE_AFTER, ...options }, async (member) => {
      const replaced = replacing && (await ask(member, transactions.replacing(replacing, plain), true));
      return replaced ?? ((await ask(member, plain, false)) as Appended);
    });
  }

  /** Reads an entry and the one before it, in one transaction. */
  glance(key: string, rank: bigint, options: CallOptions): Promise<Glance> {
    return this.#client.call('hedged', { lane: 'read', ...options }, async (member) => {
      const answer = await member.ask('/kv/txn', transactions.glance(key, rank));
      const [first, second] = answer.fields.list('responses');
      const [own] = rangeIn(first);
      const [previous] = rangeIn(second);
      return { ...madeOf(answer), own, before: previous };
    });
  }

  /**
   * Keeps a lease alive, then reads its entries on the same member: a leader that was stopped may keep alive a lease that is gone.
   * @param keys the entries to read
   * @throws {NotFound} if the lease is gone
   */
  renew(lease: string, keys: readonly string[], options: CallOptions): Promise<LeaseRenewal> {
    return this.#client.call('hedged', options, async (member) => {
      const alive = await member.ask('/lease/keepalive', { ID: lease });
      const granted = Number(alive.fields.integer('TTL'));
      if (granted <= 0) throw new NotFound('the lease is gone');
      const entries = new Map<string, V3Entry>();
      let made = madeOf(alive);
      for (let from = 0; from < keys.length; from += KEYS_A_READ) {
        const answer = await member.ask('/kv/txn', transactions.readEach(keys.slice(from, from + KEYS_A_READ)));
        if (answer.header.raftTerm !== alive.header.raftTerm)
          throw new EtcdConnectionFailed('the leader changed during the renewal', { outcomeUnknown: true });
        made = madeOf(answer);
        for (const [key, entry] of byKey(answer)) entries.set(key, entry);
      }
      return { ...made, granted, sentAt: alive.sentAt, member: member.url, entries };
    });
  }

  /** Removes an entry if it is still the same. Resolves to the answer's cluster, whether or not there was such an entry. */
  remove(key: string, guard: transactions.Guard, options: CallOptions): Promise<Made> {
    return this.#client.call('hedged', options, async (member) =>
      madeOf(await member.ask('/kv/txn', transactions.remove(key, guard))),
    );
  }

  /**
   * Writes an entry again with another lease, if it is still the same. Its rank stays. Resolves to the revision of the write;
   * undefined if the entry is not the same any more. May be sent more than once.
   * @throws {NotFound} if the lease is gone
   */
  move(key: string, target: transactions.Move, options: CallOptions): Promise<Made & { moved: bigint | undefined }> {
    return this.#client.call('hedged', options, async (member) => {
      const answer = await member.ask('/kv/txn', transactions.move(key, target));
      const { fields } = answer;
      const made = madeOf(answer);
      if (fields.flag('succeeded')) return { ...made, moved: made.revision };
      const [present] = rangeIn(fields.list('responses')[0]);
      // An earlier request of this call may have been carried out.
      const { rank, value, lease } = target;
      const done = present?.rank === rank && present.value === value && present.lease === lease;
      return { ...made, moved: done ? present.modified : undefined };
    });
  }

  /** Creates a lease. Resolves to the TTL that the store has set, which may be longer. May be sent more than once. */
  grant(id: string, ttl: number, options: CallOptions): Promise<{ granted: number; sentAt: number }> {
    let sent = 0;
    return this.#client.call('safe', { attemptTimeout: HEDGE_AFTER, ...options }, async (member) => {
      sent += 1;
      try {
        const { fields, sentAt } = await member.ask('/lease/grant', { ID: id, TTL: String(ttl) });
        return { granted: Number(fields.integer('TTL')), sentAt };
      } catch (error) {
        // An earlier request of this call has created it.
        if (!(error instanceof FailedPrecondition) || sent === 1) throw error;
        const { fields, sentAt } = await member.ask('/lease/keepalive', { ID: id });
        return { granted: Number(fields.integer('TTL')), sentAt };
      }
    });
  }

  /** Ends a lease, and with it its entries. */
  revoke(id: string, options: CallOptions): Promise<void> {
    return this.#client.call('hedged', options, async (member) => {
      try {
        await member.ask('/kv/lease/revoke', { ID: id });
      } catch (error) {
        if (!(error instanceof NotFound)) throw error;
      }
    });
  }

  /**
   * Waits until the key is deleted, or until changes since then are no longer known.
   * @throws {EtcdConnectionFailed} when the member ends the watch
   */
  changed(_: string, { rawKey, ...options }: ChangeOptions): Promise<void> {
    const until = ({ isCompacted, deleted }: WatchMessage): boolean => isCompacted || deleted.length > 0;
    return this.watch([rawKey], { ...options, until });
  }

  /**
   * Watches for the deletion of keys, in one stream, until `until` returns true.
   * @param rawKeys the keys as the store has them
   * @throws {EtcdConnectionFailed} when the member ends the stream
   */
  watch(rawKeys: readonly string[], { from, until, ...options }: WatchOptions): Promise<void> {
    const messages = rawKeys.map((rawKey) => watchDeletion(rawKey, from));
    return this.#client.call('poll', { lane: 'poll', ...options }, async (member) => {
      const over = new Scope();
      const objects = new JsonObjects((text) => {
        if (!over.aborted && until(decodeWatchMessage(text))) over.abort(OVER);
      });
      try {
        await member.stream('/watch', messages, (chunk) => objects.add(chunk), over);
      } catch (error) {
        if (!over.aborted) throw error;
      }
      if (!over.aborted) throw new EtcdConnectionFailed('the member ended the watch');
    });
  }
}

/** Returns the seconds that a lease has left, at least 0; undefined without a lease. */
async function timeToLive(member: Member, lease: string | undefined): Promise<number | undefined> {
  if (lease === undefined) return undefined;
  const { fields } = await member.ask('/kv/lease/timetolive', { ID: lease });
  return Math.max(0, Number(fields.integer('TTL')));
}

const madeOf = ({ header: { clusterId, revision } }: Answer): Made => ({ clusterId, revision });

/** Returns the keys of a range within a transaction's answer. */
const rangeIn = (response: Fields | undefined): V3Entry[] =>
  response ? decodeRange(response.message('response_range')).map(entryOf) : [];

/** Returns the keys of all ranges within a transaction's answer. */
const byKey = ({ fields }: Answer): ReadonlyMap<string, V3Entry> =>
  new Map(fields.list('responses').flatMap((response) => rangeIn(response).map((entry) => [entry.key, entry])));

const entryOf = ({ key, rawKey, value, createRevision, modRevision, lease }: KeyValue): V3Entry => ({
  key,
  rawKey,
  value,
  rank: createRevision,
  ttl: undefined,
  lease,
  modified: modRevision,
});
