import type { Source } from '../../../base/cancellation.ts';
import { now } from '../../../base/time.ts';
import { EtcdKeyNotFound } from '../../../errors.ts';
import { isBridged, isTwin } from '../../../recipe/entries/bridged-value.ts';
import { claimOf, isShared } from '../../../recipe/entries/entry-value.ts';
import { holdersAmong, type Obstacle, obstacleOf } from '../../../recipe/rules.ts';
import type { V2Client } from '../../../v2/client.ts';
import type { GetOptions, Node, Snapshot } from '../../../v2/keys-api.ts';
import { entriesAmong, inOrder, ttlOf, type V2Entry } from '../../../v2/locks/reading.ts';
import type { V3Client } from '../../../v3/client.ts';
import type { GatewayCall } from '../../../v3/gateway/gateway.ts';
import type { V3Entry } from '../../../v3/rpc/entry.ts';
import { isEntryOf } from '../../../v3/rpc/keys.ts';
import type { BridgedEntries } from '../v3/entries.ts';

/**
 * Seconds by which the TTL of a twin on v3 exceeds that of its entry on v2. A client holds the lock until the TTL on v2 has passed,
 * and nobody else may hold it on v3 before that.
 */
const LONGER = 2;

/** A queue as read from both stores. */
export interface Settled {
  /** The queue on v2. */
  readonly snapshot: Snapshot;
  /**
   * Among the entries that hold the lock on v2: what blocks the first one that is blocked on v3. undefined if none of them is
   * blocked.
   */
  readonly obstacle: Obstacle<V3Entry> | undefined;
  /** Key of the entry before the first blocked one, among those that hold the lock on v2; undefined if there is none. */
  readonly before: string | undefined;
  /** Revision of v3 at the time of the read. */
  readonly revision: bigint;
}

/**
 * The queues of a bridge to both stores. Each client of the bridge has an entry on v2. Once that entry holds the lock on v2, any
 * bridge creates a twin for it: an entry on v3 with the same key. etcd v2 never uses that key for another entry.
 *
 * Four rules keep this safe, whichever bridge does the work, and at whatever point it crashes:
 * - A read of a queue shows a hold only after a quorum read of v2, and a later read of v3 in which nothing blocks the twin.
 * - A twin outlives its entry on v2. Its TTL is never shortened. A twin that never expires gets a TTL only after its entry has one.
 *   Exception: when a client removes an entry, the twin may go first, because that hold has ended.
 * - Any bridge that finds a twin without an entry on v2 removes the twin. {@link BothQueues.settled} reads v2 once more before that:
 *   an entry is older than its twin, so an entry that is missing then is gone for good. The other functions remove only the twin of a
 *   key that was an entry on v2 before, so one read of v2 without that key is enough.
 * - A bridge that has created a twin reads v2 once more, because the entry on v2 may have been removed in between.
 */
export class BothQueues {
  readonly #v2: V2Client;
  readonly #v3: V3Client;
  readonly #entries: BridgedEntries;

  constructor(v2: V2Client, v3: V3Client, entries: BridgedEntries) {
    this.#v2 = v2;
    this.#v3 = v3;
    this.#entries = entries;
  }

  /**
   * Brings the twins on v3 in line with the entries on v2, and then returns the queue: creates and renews twins, and removes those
   * whose entry is gone.
   * @param signal ends it before its first change. Not later: after it has created a twin, it must read v2 once more
   */
  async settled(path: string, signal?: Source): Promise<Settled> {
    let stray: ReadonlySet<bigint> = new Set();
    for (let call: GatewayCall = { signal }; ; call = {}) {
      const snapshot = await this.read(path, call);
      const onV2 = entriesAmong(snapshot.node.nodes);
      const { entries, revision } = await this.#v3.requests.listings.readPages(path, call);
      const onV3 = new Map(entries.filter(({ key }) => isEntryOf(path, key)).map((entry) => [entry.key, entry]));
      const alone = withoutTwin([...onV3.values()], onV2);
      const gone = alone.filter(({ rank }) => stray.has(rank));
      const heads = headsOf(onV2);
      const removals = gone.map(async (entry) => {
        await this.#entries.remove(entry);
        return false;
      });
      const changes = await this.#unlessFailed(heads, [this.#enter(heads, onV3), ...removals]);
      if (alone.length === 0 && !changes.includes(true)) return { snapshot, ...blockerOf(heads, onV3), revision };
      const earlier = stray;
      stray = new Set(alone.map(({ rank }) => rank).filter((rank) => !earlier.has(rank)));
    }
  }

  /**
   * Renews the twin of an entry on v2, if any, so that the twin outlives the entry.
   * @param atLeast seconds by which the twin must outlive it
   * @returns the twin
   */
  async prolong(head: Pick<V2Entry, 'key' | 'ttl'>, atLeast: number): Promise<V3Entry | undefined> {
    for (;;) {
      const { own } = await this.#v3.requests.entries.get(head.key, {});
      if (!own || (await this.#outlives(head, own, atLeast))) return own;
      // Do not read the TTL again: on a slow network, it would be too low each time.
      const renewed = await this.#renew(head, own);
      if (renewed) return renewed;
    }
  }

  /** Gives the twin of an entry on v2 a TTL, if it has none although the entry has one. */
  async giveTtl(key: string): Promise<void> {
    for (;;) {
      // Read the entry again after each change: it may have been written since, and the twin would then expire too early.
      const present = await this.#find(key);
      if (!present) return this.removeTwin(key);
      const ttl = ttlOf(present);
      const { own } = await this.#v3.requests.entries.get(key, {});
      if (!own) return;
      const lacksTtl = own.lease === undefined && ttl !== undefined;
      if (!lacksTtl && (await this.#outlives({ ttl }, own, 0))) return;
      await this.#renew({ ttl }, own);
    }
  }

  /** Removes the twin of an entry on v2, if there is one. */
  async removeTwin(key: string): Promise<void> {
    const { own } = await this.#v3.requests.entries.get(key, {});
    if (own && isTwin(own)) await this.#entries.remove(own);
  }

  /** Reads a directory on v2 by a quorum read. Returns an empty directory if it does not exist. */
  async read(path: string, options: GetOptions): Promise<Snapshot> {
    try {
      return await this.#v2.get(path, { recursive: true, sorted: true, quorum: true, ...options });
    } catch (error) {
      if (!(error instanceof EtcdKeyNotFound)) throw error;
      const index = error.index ?? 0;
      const node: Node = { key: path, dir: true, createdIndex: index, modifiedIndex: index, nodes: [] };
      return { clusterId: this.#v2.clusterId, sentAt: now(), node, index };
    }
  }

  /**
   * Creates the twins that are missing, and renews those that would expire too early. Resolves to whether there were any. Creates
   * twins one by one, in the order of v2. Otherwise two twins could be in the wrong order, with an entry of another client between
   * them: the two would wait for each other through that entry.
   */
  async #enter(heads: readonly V2Entry[], onV3: ReadonlyMap<string, V3Entry>): Promise<boolean> {
    const missing = heads.filter(({ key }) => !onV3.has(key));
    const renewals = Promise.all(
      heads.map((head) => {
        const twin = onV3.get(head.key);
        if (!twin) return false;
        const lacksTtl = twin.lease === undefined && head.ttl !== undefined;
        return lacksTtl ? this.giveTtl(head.key).then(() => true) : this.#prolonged(head, twin);
      }),
    );
    const creations = async (): Promise<void> => {
      for (const { key, value, ttl } of missing)
        await this.#entries.create(key, value, ttl === undefined ? null : ttl + LONGER);
    };
    const [renewed] = await Promise.all([renewals, creations()]);
    return missing.length > 0 || renewed.includes(true);
  }

  /**
   * Waits for the changes on v3. If one of them has failed, removes the twins that may have been created for entries which are
   * gone by now, and rejects with the error.
   */
  async #unlessFailed<T>(heads: readonly V2Entry[], changes: readonly Promise<T>[]): Promise<T[]> {
    const outcomes = await Promise.allSettled(changes);
    const failed = outcomes.find((outcome) => outcome.status === 'rejected');
    if (!failed) return outcomes.flatMap((outcome) => (outcome.status === 'fulfilled' ? [outcome.value] : []));
    await Promise.allSettled(heads.map(async ({ key }) => (await this.#find(key)) ?? this.removeTwin(key)));
    throw failed.reason;
  }

  /** Reads an entry on v2, by quorum. */
  async #find(key: string): Promise<Node | undefined> {
    try {
      return (await this.#v2.get(key, { quorum: true })).node;
    } catch (error) {
      if (error instanceof EtcdKeyNotFound) return undefined;
      throw error;
    }
  }

  /** Renews a twin unless it outlives its entry. Resolves to whether it was renewed. */
  async #prolonged(head: V2Entry, twin: V3Entry): Promise<boolean> {
    if (await this.#outlives(head, twin, 0)) return false;
    await this.#renew(head, twin);
    return true;
  }

  /** Whether a twin outlives its entry by `atLeast` seconds. */
  async #outlives({ ttl }: Pick<V2Entry, 'ttl'>, twin: V3Entry, atLeast: number): Promise<boolean> {
    if (twin.lease === undefined) return true;
    if (ttl === undefined) return false;
    const [{ ttl: left = 0 } = twin] = await this.#v3.requests.leases.withTtls([twin], {});
    return left >= ttl + atLeast;
  }

  /** Renews a twin so that it outlives its entry. Resolves to undefined if the twin is gone or has changed. */
  #renew({ ttl }: Pick<V2Entry, 'ttl'>, twin: V3Entry): Promise<V3Entry | undefined> {
    return this.#entries.renew(twin, ttl === undefined ? null : ttl + LONGER, true);
  }
}

/** Returns the twins on v3 whose entry on v2 is gone. */
function withoutTwin(onV3: readonly V3Entry[], onV2: readonly V2Entry[]): V3Entry[] {
  const keys = new Set(onV2.map(({ key }) => key));
  return onV3.filter((entry) => isTwin(entry) && !keys.has(entry.key));
}

/** Returns the entries that hold the lock on v2, and whose clients use a bridge to both stores. */
function headsOf(onV2: readonly V2Entry[]): V2Entry[] {
  const entries = inOrder(onV2).map((entry) => ({ ...entry, ...claimOf(entry.value) }));
  return holdersAmong(entries).filter(({ value }) => isBridged(value));
}

/** Returns what blocks the first of these entries that is blocked on v3, and the entry before that one. */
function blockerOf(
  heads: readonly V2Entry[],
  onV3: ReadonlyMap<string, V3Entry>,
): Pick<Settled, 'obstacle' | 'before'> {
  const entries = [...onV3.values()];
  // A shared entry waits only for others. Many entries may be shared and hold the lock, and usually none of them is blocked.
  const exclusive = entries.filter(({ value }) => !isShared(value));
  for (const [index, head] of heads.entries()) {
    const twin = onV3.get(head.key);
    const obstacle = twin && obstacleOf(isShared(twin.value) ? exclusive : entries, twin);
    if (obstacle) return { obstacle, before: heads[index - 1]?.key };
  }
  return { obstacle: undefined, before: undefined };
}
