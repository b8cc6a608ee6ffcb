import { Scope } from '../base/cancellation.ts';
import { EtcdClusterIdChanged, EtcdConnectionFailed, EtcdException } from '../errors.ts';
import type { Repeat } from '../http/failover/round.ts';
import {
  type Appended,
  byKey,
  entryOf,
  type LeaseRenewal,
  type Listing,
  type Neighbours,
  rangeIn,
  responsesIn,
  type Stamp,
  stampOf,
  type V3Entry,
} from './answers.ts';
import type { Answer, CallOptions, Member, V3Client } from './client.ts';
import { FailedPrecondition, NotFound, OUT_OF_RANGE } from './errors.ts';
import { decodeRange, encodeBytes, type Fields, type Json } from './messages.ts';
import { readInPages } from './pages.ts';
import * as transactions from './transactions.ts';
import { decodeWatchMessage, JsonObjects, type WatchEvent, type WatchMessage, watchDeletion } from './watch.ts';

/** Abort reason of a watch that has reported the expected change. */
const OVER = new Error('the watch has shown a change');

export interface AppendOptions extends CallOptions {
  readonly value: string;
  /** Id of the lease; undefined: the entry never expires. */
  readonly lease: string | undefined;
  /** Whether to read the whole queue, and not only the entry before the own one. */
  readonly whole: boolean;
  /** Counts the requests for this entry that were sent and not answered: each may still be carried out. */
  readonly unanswered: { count: number };
  /** Ids of the leases that these requests use; undefined: no lease. Default: only `lease`. */
  readonly leases?: ReadonlySet<string | undefined>;
  /** An entry to remove in the same transaction. */
  readonly replacing?: transactions.Replaced | undefined;
}

export interface GrantOptions extends CallOptions {
  /** `safe`: asks one member after the other. Default `hedged`. */
  readonly repeat?: Extract<Repeat, 'hedged' | 'safe'>;
}

/** Result of creating a lease. */
export interface Granted extends Pick<Stamp, 'clusterId'>, Pick<LeaseRenewal, 'granted' | 'sentAt'> {
  /** Whether the request was sent more than once: a member may still carry out another copy. */
  readonly isRepeated: boolean;
}

export interface ChangeOptions extends CallOptions {
  /** The watch reports changes from this revision on. */
  readonly from: bigint;
}

export interface VacateOptions extends ChangeOptions {
  /** The keys to watch. */
  readonly keys: readonly string[];
  /** How many of them must be deleted. */
  readonly count: number;
}

export interface WatchOptions extends CallOptions {
  /** Called with each message. Returns true to end the watch. */
  readonly until: (said: WatchMessage) => boolean;
}

/** A change of a key. */
export interface EntryChange extends Omit<WatchEvent, 'written' | 'previous'> {
  /** The entry after the change; undefined: it was deleted. */
  readonly written: V3Entry | undefined;
  /** The entry before the change; undefined: it was created. */
  readonly previous: V3Entry | undefined;
}

/** Sends the requests for lock queues and leases on etcd v3. */
export class LockRequests {
  readonly #client: V3Client;

  constructor(client: V3Client) {
    this.#client = client;
  }

  /** Reads all keys below the path of a queue, also those of locks whose names begin with this lock's and a "/". Linearizable. */
  read(path: string, options: CallOptions): Promise<Listing> {
    return this.readPrefix(`${path}/`, options);
  }

  /** Like {@link read}, for any number of keys, in the order of the keys: see {@link readInPages}. */
  readPages(path: string, options: CallOptions): Promise<Listing> {
    return readInPages(this.#client, path, options);
  }

  /** Reads all keys that begin with a prefix, in the order of their creation. */
  readPrefix(prefix: string, options: CallOptions): Promise<Listing> {
    return this.#client.call('hedged', { lane: 'read', ...options }, async (member) => {
      const answer = await member.ask('/kv/range', transactions.below(prefix));
      return { ...stampOf(answer), entries: decodeRange(answer.fields).map(entryOf) };
    });
  }

  /**
   * Reads the keys that were created first below the path of a queue, at most `count`. Returns the first of them that `isEntry` accepts,
   * with its remaining TTL.
   */
  first(
    path: string,
    { count, isEntry }: { readonly count: number; readonly isEntry: (key: string) => boolean },
    options: CallOptions,
  ): Promise<V3Entry | undefined> {
    return this.#client.call('safe', { lane: 'read', ...options }, async (member) => {
      const { fields } = await member.ask('/kv/range', transactions.firstBelow(`${path}/`, count));
      const first = decodeRange(fields)
        .map(entryOf)
        .find(({ key }) => isEntry(key));
      return first && { ...first, ttl: await timeToLive(member, first.lease) };
    });
  }

  /** Resolves to the entries with their remaining TTLs. Sends one request for each of their leases. */
  async withTtls(entries: readonly V3Entry[], options: CallOptions): Promise<readonly V3Entry[]> {
    const ttls = new Map<string | undefined, number | undefined>([[undefined, undefined]]);
    // A call for each lease, because a call that takes a second counts as not answered.
    const read = (lease: string | undefined) =>
      this.#client.call('hedged', { lane: 'read', ...options }, (member) => timeToLive(member, lease));
    for (const { lease } of entries) if (!ttls.has(lease)) ttls.set(lease, await read(lease));
    return entries.map((entry) => ({ ...entry, ttl: ttls.get(entry.lease) }));
  }

  /** Reads the keys below a path that were created at a revision. Linearizable. */
  createdAt(path: string, revision: bigint, options: CallOptions): Promise<Listing> {
    return this.#client.call('hedged', { lane: 'read', ...options }, async (member) => {
      const answer = await member.ask('/kv/range', transactions.createdAt(`${path}/`, revision));
      return { ...stampOf(answer), entries: decodeRange(answer.fields).map(entryOf) };
    });
  }

  /** Reads the TTL that a lease was created with, in seconds; undefined if the lease is gone. */
  grantedTo(lease: string, options: CallOptions): Promise<number | undefined> {
    return this.#client.call('hedged', { lane: 'read', ...options }, async (member) => {
      const { fields } = await member.ask('/kv/lease/timetolive', { ID: lease });
      return fields.integer('TTL') < 0n ? undefined : Number(fields.integer('grantedTTL'));
    });
  }

  /** Resolves to whether etcd still has the events since a revision. The revision must not be in the future. */
  knowsSince(path: string, revision: bigint, options: CallOptions): Promise<boolean> {
    return this.#client.call('hedged', { lane: 'read', ...options }, async (member) => {
      try {
        await member.ask('/kv/range', { key: encodeBytes(path), revision: String(revision) });
        return true;
      } catch (error) {
        if (error instanceof EtcdException && error.errorCode === OUT_OF_RANGE) return false;
        throw error;
      }
    });
  }

  /** Reads the alarms of the cluster, such as NOSPACE, from the status of a member (etcd 3.4 and later). */
  alarms(options: CallOptions): Promise<readonly string[]> {
    return this.#client.call('hedged', { lane: 'read', ...options }, async (member) => {
      const { fields } = await member.ask('/maintenance/status', {});
      return fields.texts('errors').filter((error) => error.includes('alarm:'));
    });
  }

  /** Reads one key. {@link Neighbours.before} is not read. */
  async get(key: string, options: CallOptions): Promise<Neighbours> {
    return this.#client.call('hedged', { lane: 'read', ...options }, async (member) => {
      const answer = await member.ask('/kv/range', { key: encodeBytes(key) });
      const [own] = decodeRange(answer.fields).map(entryOf);
      return { ...stampOf(answer), own, before: undefined };
    });
  }

  /**
   * Reads single keys at one revision. Linearizable. Resolves to those that exist, by key.
   * @param keys at most {@link transactions.READS_A_TRANSACTION}
   */
  readEach(keys: readonly string[], options: CallOptions): Promise<Stamp & Pick<LeaseRenewal, 'entries'>> {
    return this.#client.call('hedged', { lane: 'read', ...options }, async (member) => {
      const answer = await member.ask('/kv/txn', transactions.readEach(keys));
      return { ...stampOf(answer), entries: byKey(answer, keys.length) };
    });
  }

  /**
   * Creates the entry unless its key exists, and reads it and the one before it in that transaction. May be sent more than once.
   * @param key the own key, directly below the path of its queue
   * @throws {NotFound} if the lease is gone
   */
  append(key: string, appending: AppendOptions): Promise<Appended> {
    const { value, lease, whole, unanswered, leases = new Set([lease]), replacing, ...options } = appending;
    const plain = transactions.append(key, value, lease, whole);
    /** Resolves to undefined if the entry to replace has changed or is gone: then etcd has written nothing. */
    const ask = async (member: Member, transaction: Json, replaces: boolean): Promise<Appended | undefined> => {
      unanswered.count += 1;
      const answer = await member.ask('/kv/txn', transaction).catch((error: unknown) => {
        if (error instanceof EtcdException && !error.outcomeUnknown) unanswered.count -= 1;
        throw error;
      });
      const existed = !answer.fields.flag('succeeded');
      // The first response of a replacing transaction is that of the removal: skip it.
      const isReplaced = replaces && !existed;
      const [first, second] = responsesIn(answer, isReplaced ? 3 : 2).slice(-2) as [Fields, Fields];
      const entries = rangeIn(second);
      const [latest, before] = entries;
      const [present] = existed ? rangeIn(first) : [latest];
      const count = Number(second.message('response_range').integer('count'));
      const isUnchanged = replaces && existed && !present;
      if (!isUnchanged && present?.key !== key) throw answer.unusable('does not contain the key of the new entry');
      unanswered.count -= 1;
      if (!present) return undefined;
      // With such a lease, the entry was created by one of the unanswered requests.
      const isOwn = present.lease !== undefined && leases.has(present.lease);
      if (existed && isOwn && unanswered.count > 0) unanswered.count -= 1;
      const all = whole ? entries : undefined;
      return { ...stampOf(answer), own: present, before, existed, replaced: isReplaced, count, all };
    };
    return this.#client.call('safe', options, async (member) => {
      const replaced = replacing && (await ask(member, transactions.replacing(replacing, plain), true));
      return replaced ?? ((await ask(member, plain, false)) as Appended);
    });
  }

  /** Reads an entry and the one before it, in one transaction. */
  neighbours(key: string, rank: bigint, options: CallOptions): Promise<Neighbours> {
    return this.#client.call('hedged', { lane: 'read', ...options }, async (member) => {
      const answer = await member.ask('/kv/txn', transactions.neighbours(key, rank));
      const [first, second] = responsesIn(answer, 2);
      const [own] = rangeIn(first);
      const [previous] = rangeIn(second);
      return { ...stampOf(answer), own, before: previous };
    });
  }

  /**
   * Keeps a lease alive, then reads its entries on the same member: a leader that was stopped may confirm a lease that is gone.
   * @param keys the entries to read
   * @throws {NotFound} if the lease is gone
   */
  renew(lease: string, keys: readonly string[], options: CallOptions): Promise<LeaseRenewal> {
    return this.#client.call('hedged', options, async (member) => {
      const alive = await member.ask('/lease/keepalive', { ID: lease });
      const granted = Number(alive.fields.integer('TTL'));
      if (granted <= 0) throw new NotFound(`lease ${lease} does not exist`);
      const entries = new Map<string, V3Entry>();
      let stamp = stampOf(alive);
      for (const some of transactions.readable(keys)) {
        const answer = await member.ask('/kv/txn', transactions.readEach(some));
        checkSameCluster(alive, answer);
        if (answer.header.raftTerm !== alive.header.raftTerm)
          throw new EtcdConnectionFailed('the leader changed during the renewal', { outcomeUnknown: true });
        stamp = stampOf(answer);
        for (const [key, entry] of byKey(answer, some.length)) entries.set(key, entry);
      }
      return { ...stamp, granted, sentAt: alive.sentAt, member: member.url, entries };
    });
  }

  /** Deletes a key without a condition: no other client may use this key. May be sent more than once. */
  delete(key: string, options: CallOptions): Promise<void> {
    return this.#client.call('hedged', options, async (member) => {
      await member.ask('/kv/deleterange', { key: encodeBytes(key) });
    });
  }

  /**
   * Removes an entry if its value and rank are unchanged. Also resolves if there is no such entry. May be sent more than once. If more
   * than one request may have been carried out (`sent`), an earlier one may have removed the entry.
   */
  remove(
    key: string,
    guard: transactions.RemovalGuard,
    options: CallOptions,
  ): Promise<Stamp & { isRemoved: boolean; sent: number }> {
    let sent = 0;
    return this.#client.call('hedged', options, async (member) => {
      sent += 1;
      try {
        const answer = await member.ask('/kv/txn', transactions.remove(key, guard));
        return { ...stampOf(answer), isRemoved: answer.fields.flag('succeeded'), sent };
      } catch (error) {
        if (error instanceof EtcdException && !error.outcomeUnknown) sent -= 1;
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
    target: transactions.Move,
    options: CallOptions,
  ): Promise<Stamp & { moved: bigint | undefined; present?: V3Entry | undefined }> {
    return this.#client.call('hedged', options, async (member) => {
      const answer = await member.ask('/kv/txn', transactions.move(key, target));
      const { fields } = answer;
      const stamp = stampOf(answer);
      if (fields.flag('succeeded')) return { ...stamp, moved: stamp.revision };
      const [read] = responsesIn(answer, 1);
      const [present] = rangeIn(read);
      // An earlier request of this call may have been carried out.
      const { rank, value, lease } = target;
      const done = present?.rank === rank && present.value === value && present.lease === lease;
      return { ...stamp, moved: done ? present.modified : undefined, present };
    });
  }

  /**
   * Writes a marker if it is unchanged. Resolves to the present marker. May be sent more than once.
   * @throws {NotFound} if the lease is gone
   */
  write(key: string, target: transactions.Write, options: CallOptions): Promise<V3Entry | undefined> {
    return this.#client.call('hedged', options, async (member) => {
      const answer = await member.ask('/kv/txn', transactions.write(key, target));
      const [last] = responsesIn(answer, answer.fields.flag('succeeded') ? 2 : 1).slice(-1) as [Fields];
      return rangeIn(last)[0];
    });
  }

  /** Creates a lease. Resolves to the TTL that the store has set, which may be longer. May be sent more than once, also by a proxy. */
  async grant(id: string, ttl: number, { repeat = 'hedged', ...options }: GrantOptions): Promise<Granted> {
    let sent = 0;
    const granted = await this.#client.call(repeat, options, async (member) => {
      sent += 1;
      try {
        const answer = await member.ask('/lease/grant', { ID: id, TTL: String(ttl) });
        if (String(answer.fields.integer('ID')) !== id) throw answer.unusable(`is not about lease ${id}`);
        return grantedIn(answer, answer.fields.positive('TTL'));
      } catch (error) {
        // An earlier copy of the request has created the lease: one of this call, or one that a proxy has repeated. A lease of others has keys.
        if (!(error instanceof FailedPrecondition) || (sent === 1 && (await hasKeys(member, id)))) throw error;
        const alive = await member.ask('/lease/keepalive', { ID: id });
        const ttl = alive.fields.integer('TTL');
        if (ttl <= 0n) throw new NotFound(`lease ${id} does not exist`);
        return grantedIn(alive, ttl);
      }
    });
    return { ...granted, isRepeated: sent > 1 };
  }

  /** Revokes a lease, which removes its entries. Also resolves if the lease is gone. */
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
   * Waits until the key is deleted. Also resolves if etcd no longer has all events since `from`.
   * @throws {EtcdConnectionFailed} when the member ends the watch
   */
  changed(key: string, { from, ...options }: ChangeOptions): Promise<void> {
    const until = ({ isCompacted, events }: WatchMessage): boolean =>
      isCompacted || events.some(({ written }) => !written);
    return this.watch([watchDeletion({ key: encodeBytes(key) }, from)], { ...options, until });
  }

  /**
   * Waits until `count` of the keys `keys`, all below the path of a queue, are deleted. Also resolves if etcd no longer has all events
   * since `from`.
   * @throws {EtcdConnectionFailed} when the member ends the watch
   */
  vacated(path: string, { keys, count, from, ...options }: VacateOptions): Promise<void> {
    const left = new Set(keys);
    const enough = left.size - count;
    const until = ({ isCompacted, events }: WatchMessage): boolean => {
      for (const { key, written } of events) if (!written) left.delete(key);
      return isCompacted || left.size <= enough;
    };
    const { key, range_end } = transactions.below(`${path}/`);
    return this.watch([watchDeletion({ key, range_end }, from)], { ...options, until });
  }

  /**
   * Waits for the next changes of keys with a prefix. Resolves to undefined if etcd no longer has all events since `from`.
   * @param from the first revision whose changes are reported
   * @throws {EtcdConnectionFailed} when the member ends the watch
   */
  async events(prefix: string, from: bigint, options: CallOptions): Promise<readonly EntryChange[] | undefined> {
    const { key, range_end } = transactions.below(prefix);
    let said: WatchMessage | undefined;
    const until = (message: WatchMessage): boolean => {
      if (!message.isCompacted && message.events.length === 0) return false;
      said = message;
      return true;
    };
    const request = { key, range_end, start_revision: String(from), prev_kv: true };
    await this.watch([{ create_request: request }], { ...options, until });
    if (said?.isCompacted) return undefined;
    return said?.events.map(({ written, previous, ...event }) => ({
      ...event,
      written: written && entryOf(written),
      previous: previous && entryOf(previous),
    }));
  }

  /**
   * Watches keys, in one stream, until `until` returns true.
   * @param messages the requests that begin the watches
   * @throws {EtcdConnectionFailed} when the member ends the stream
   */
  watch(messages: readonly Json[], { until, ...options }: WatchOptions): Promise<void> {
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

const grantedIn = ({ header: { clusterId }, sentAt }: Answer, ttl: bigint): Omit<Granted, 'isRepeated'> => ({
  clusterId,
  granted: Number(ttl),
  sentAt,
});

/** @throws {EtcdClusterIdChanged} if two answers that belong together came from different clusters */
function checkSameCluster({ header: { clusterId: first } }: Answer, { header: { clusterId: second } }: Answer): void {
  if (first !== second)
    throw new EtcdClusterIdChanged(`cluster ${first} renewed a lease, but cluster ${second} answered for its entries`, {
      outcomeUnknown: true,
    });
}

/** Returns the seconds that a lease has left, at least 0; undefined without a lease. */
async function timeToLive(member: Member, lease: string | undefined): Promise<number | undefined> {
  if (lease === undefined) return undefined;
  const { fields } = await member.ask('/kv/lease/timetolive', { ID: lease });
  return Math.max(0, Number(fields.integer('TTL')));
}

async function hasKeys(member: Member, lease: string): Promise<boolean> {
  const { fields } = await member.ask('/kv/lease/timetolive', { ID: lease, keys: true });
  return fields.texts('keys').length > 0;
}
