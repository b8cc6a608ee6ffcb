import { EtcdKeyNotFound } from '../../../errors.ts';
import { isBridged } from '../../../recipe/entries/bridged-value.ts';
import { isShared, type LockMode } from '../../../recipe/entries/entry-value.ts';
import { holdersAmong, nearestBlocking } from '../../../recipe/rules.ts';
import { now } from '../../../time.ts';
import type { V2Client } from '../../../v2/client.ts';
import type { GetOptions, Node, Snapshot } from '../../../v2/keys-api.ts';
import { entriesAmong, inOrder, type V2Entry } from '../../../v2/locks/reading.ts';
import type { V3Entry } from '../../../v3/answers.ts';
import type { V3Client } from '../../../v3/client.ts';
import { isDirectly } from '../../../v3/locks/reading.ts';
import type { BridgedEntries } from '../v3/entries.ts';

/**
 * Seconds for which an entry on v3 is kept longer than the one on v2: on v2 a hold ends at its TTL, and until then nobody else may
 * hold on v3.
 */
const LONGER = 2;

/** What the two stores show of a queue. */
export interface Settled {
  /** The queue on v2. */
  readonly snapshot: Snapshot;
  /** The entry on v3 that a client waits for which is first on v2; undefined if there is none. */
  readonly blocker: V3Entry | undefined;
  /** Revision of v3 at which that was so. */
  readonly revision: bigint;
}

/**
 * The queues of a bridge to both stores. Its clients have an entry on v2. Once that one is first there, any bridge enters the queue
 * on v3 for them: with a twin, whose key is the same. So the entries of a twin are known by their key, which is never used again.
 *
 * Four rules keep this safe, whatever bridge does it, and wherever it dies:
 * - A lock is shown as held only by a read of v2, by quorum, and a later one of v3 that shows the twin as first.
 * - A twin lasts longer than the entry on v2. It is never made shorter.
 * - A twin without an entry on v2 is removed, by whoever finds it. A read of v2 after that of the twin must show so: then the entry
 *   was there before, and is gone for good.
 * - Whoever has made a twin reads v2 once more, because the entry there may have been removed meanwhile.
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
   * Reads a queue, after all has been done on v3 that its entries on v2 ask for. Not to be aborted: a twin that was made must be
   * compared with v2 once more.
   */
  async settled(path: string): Promise<Settled> {
    let stray: ReadonlySet<bigint> = new Set();
    for (;;) {
      const snapshot = await this.read(path, {});
      const onV2 = entriesAmong(snapshot.node.nodes);
      const { entries, revision } = await this.#v3.requests.read(path, {});
      const onV3 = new Map(entries.filter(({ key }) => isDirectly(path, key)).map((entry) => [entry.key, entry]));
      const alone = withoutTwin([...onV3.values()], onV2);
      const gone = alone.filter(({ rank }) => stray.has(rank));
      const heads = headsOf(onV2);
      const changes = await Promise.all([
        ...gone.map((entry) => this.#entries.remove(entry)),
        ...heads.map((head) => this.#enter(head, onV3.get(head.key))),
      ]);
      if (alone.length === 0 && !changes.includes(true)) return { snapshot, blocker: blockerOf(heads, onV3), revision };
      stray = new Set(alone.filter((entry) => !gone.includes(entry)).map(({ rank }) => rank));
    }
  }

  /** Keeps the twin of an entry on v2 for as long as that one, if there is a twin. */
  async prolong(head: Pick<V2Entry, 'key' | 'ttl'>): Promise<void> {
    for (;;) {
      const { own } = await this.#v3.requests.get(head.key, {});
      if (!own || !(await this.#outlive(head, own))) return;
    }
  }

  /** Removes the twin of an entry on v2, if there is one. */
  async removeTwin(key: string): Promise<void> {
    const { own } = await this.#v3.requests.get(key, {});
    if (own && isTwin(own)) await this.#entries.remove(own);
  }

  /** Reads a directory on v2, by quorum. One that was never used is empty. */
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

  /** Makes a twin, or prolongs it. Resolves to whether it did. */
  async #enter(head: V2Entry, twin: V3Entry | undefined): Promise<boolean> {
    if (twin) return this.#outlive(head, twin);
    await this.#entries.create(head.key, head.value, head.ttl === undefined ? null : head.ttl + LONGER);
    return true;
  }

  /** Resolves to whether the twin had to be prolonged. */
  async #outlive({ ttl }: Pick<V2Entry, 'ttl'>, twin: V3Entry): Promise<boolean> {
    if (twin.lease === undefined) return false;
    const [{ ttl: left = 0 } = twin] = await this.#v3.requests.withTtls([twin], {});
    if (ttl !== undefined && left >= ttl) return false;
    await this.#entries.renew(twin, ttl === undefined ? null : ttl + LONGER);
    return true;
  }
}

/** Whether an entry on v3 was made by a bridge to both stores. */
const isTwin = ({ key, value }: V3Entry): boolean => /\/\d{20}$/.test(key) && isBridged(value);

function withoutTwin(onV3: readonly V3Entry[], onV2: readonly V2Entry[]): V3Entry[] {
  const keys = new Set(onV2.map(({ key }) => key));
  return onV3.filter((entry) => isTwin(entry) && !keys.has(entry.key));
}

/** Returns the entries that hold the lock on v2, and whose clients use a bridge to both stores. */
function headsOf(onV2: readonly V2Entry[]): V2Entry[] {
  const entries = inOrder(onV2).map((entry) => ({ ...entry, mode: modeOf(entry) }));
  return holdersAmong(entries).filter(({ value }) => isBridged(value));
}

const modeOf = ({ value }: Pick<V2Entry, 'value'>): LockMode => (isShared(value) ? 'shared' : 'exclusive');

/** Returns what the first of these entries waits for on v3 that does so. */
function blockerOf(heads: readonly V2Entry[], onV3: ReadonlyMap<string, V3Entry>): V3Entry | undefined {
  const entries = [...onV3.values()];
  for (const head of heads) {
    const twin = onV3.get(head.key);
    const blocker = twin && nearestBlocking(entries, twin, modeOf(head));
    if (blocker) return blocker;
  }
  return undefined;
}
