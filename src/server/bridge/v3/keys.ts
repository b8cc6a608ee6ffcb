import { randomBytes } from 'node:crypto';
import { now } from '../../../base/time.ts';
import { etcdError } from '../../../v2/error-codes.ts';
import type {
  Append,
  Change,
  CreateOptions,
  DeleteOptions,
  GetOptions,
  KeyEvent,
  SetOptions,
  Snapshot,
  WatchOptions,
} from '../../../v2/keys-api.ts';
import { isConditional } from '../../../v2/requests.ts';
import { type Exact, hasBytes } from '../../../v2/wire.ts';
import type { V3Client } from '../../../v3/client.ts';
import type { V3Entry } from '../../../v3/rpc/entry.ts';
import { idOf } from '../../../v3/rpc/keys.ts';
import type { ServedKeys } from '../../served-keys.ts';
import { translated } from '../errors.ts';
import { eventOf, firstOf, translatedEvents } from '../events.ts';
import type { LeaseCounts } from '../lease-counts.ts';
import { retried } from '../retry.ts';
import { type BridgedKey, bridged, checkLength, type EntryKey, refused } from '../target.ts';
import { changedEachTime, compare, MOST_TRIES, renewGuarded, secondsOf } from '../writes.ts';
import { BridgedEntries } from './entries.ts';
import { BridgedPolls } from './polls.ts';
import { directoryOf, nodeOf, removedNode } from './tree.ts';

/**
 * Locks on etcd v3 as the keys of etcd v2 that python-etcd's `Lock` uses. The entry with create revision 7 of the lock `name` is
 * `<lockPrefix>/<name>/00000000000000000007`, and an index is a revision. Keeps no state, so that any number of bridges serve the
 * same locks.
 */
export class BridgedKeys implements ServedKeys {
  readonly #client: V3Client;
  readonly #entries: BridgedEntries;
  readonly #polls: BridgedPolls;

  constructor(client: V3Client, leases: LeaseCounts) {
    this.#client = client;
    this.#entries = new BridgedEntries(client, leases);
    this.#polls = new BridgedPolls(client, this.#entries);
  }

  get clusterId(): string | undefined {
    return this.#client.clusterId;
  }

  get(key: string, { recursive = false, signal }: GetOptions = {}): Promise<Snapshot> {
    const call = async () => {
      const at = this.#at(key);
      if (at.kind !== 'entry') return this.#list(at, recursive, { signal });
      const { own, revision } = await this.#entries.find(at, { signal });
      const [withTtl = own] = await this.#client.requests.leases.withTtls([own], { signal });
      return { ...this.#answer(), node: nodeOf(at.path, withTtl), index: Number(revision) };
    };
    return translated(() => retried(call, signal));
  }

  createInOrder(key: string, value = '', { ttl, dir, listing, signal }: Exact<CreateOptions> = {}): Promise<Append> {
    return translated(async () => {
      const at = this.#at(key);
      if (at.kind !== 'queue' || dir || hasBytes(value)) throw refused(`${key} cannot be created`);
      checkLength(value);
      const seconds = secondsOf(ttl);
      // Each value has at most one entry: after a lost answer, python-etcd repeats the append at the next member.
      const own = await this.#entries.append(
        `${key}/${value === '' ? randomBytes(16).toString('hex') : idOf(value)}`,
        value,
        seconds,
        signal,
      );
      const node = nodeOf(key, { ...own, ttl: seconds ?? undefined });
      const listed = listing ? await this.#list(at, true, {}) : undefined;
      return { ...this.#answer(), action: 'create', node, listing: Promise.resolve(listed) };
    });
  }

  /** Renews an entry. Does not re-create an entry that has expired. */
  set(key: string, value = '', options: Exact<SetOptions> = {}): Promise<Change> {
    const { signal } = options;
    const call = async () => {
      const at = this.#at(key);
      if (at.kind !== 'entry' || options.dir || options.prevExist === false) throw refused(`${key} cannot be set`);
      const find = async () => {
        const { own, revision } = await this.#entries.find(at, { signal });
        return { own, value: own.value, modified: own.modified, index: Number(revision) };
      };
      const write = async (own: V3Entry, ttl: number | null) => {
        const renewed = await this.#entries.renew(own, ttl, options.prevIndex !== undefined, signal);
        if (!renewed) return undefined;
        const node = nodeOf(at.path, { ...renewed, ttl: ttl ?? undefined });
        return { ...this.#answer(), node, prevNode: nodeOf(at.path, own) };
      };
      return renewGuarded(key, value, options, { find, write });
    };
    return translated(() => retried(call, signal));
  }

  delete(key: string, options: Exact<DeleteOptions> = {}): Promise<Change> {
    const call = async () => {
      const at = this.#at(key);
      if (at.kind !== 'entry') throw await this.#whyNotDeleted(at, key, options);
      for (let tries = 1; ; tries += 1) {
        const { own, before } = await this.#toDelete(at, tries === 1 && options.prevIndex === undefined);
        compare(own, options, Number(before));
        const { isRemoved, revision } = await this.#entries.remove(own, options.prevIndex !== undefined);
        if (isRemoved) {
          const prevNode = nodeOf(at.path, own);
          const node = removedNode(prevNode, revision);
          return { ...this.#answer(), action: isConditional(options) ? 'compareAndDelete' : 'delete', node, prevNode };
        }
        if (tries === MOST_TRIES) throw changedEachTime(key, Number(before));
      }
    };
    return translated(() => retried(call));
  }

  /**
   * @param mayBeOld whether the entry may have been written or removed since. Its value never changes
   * @throws {EtcdKeyNotFound} if the entry is gone: another client has removed it, or an earlier attempt of this call
   */
  async #toDelete(at: EntryKey, mayBeOld: boolean): Promise<{ readonly own: V3Entry; readonly before: bigint }> {
    const remembered = mayBeOld ? this.#entries.remembered(at) : undefined;
    if (remembered) return { own: remembered, before: remembered.modified };
    const { own, revision } = await this.#entries.find(at, {});
    return { own, before: revision };
  }

  watch(key: string, options: WatchOptions = {}): Promise<KeyEvent | undefined> {
    return translated(() => firstOf(this.#events(key, options, true)));
  }

  stream(key: string, options: WatchOptions = {}): AsyncIterable<KeyEvent> {
    return translatedEvents(() => this.#events(key, options));
  }

  /** @param onlyFirst whether only the first event is used */
  #events(key: string, options: WatchOptions, onlyFirst = false): AsyncIterable<KeyEvent> {
    const at = this.#at(key);
    if (at.kind === 'entry') return eventOf(this.#polls.entry(at, options));
    return this.#polls.below(at.path, options, onlyFirst);
  }

  #at(key: string): BridgedKey {
    return bridged(key, this.#client.lockPrefix);
  }

  #answer(): Pick<Snapshot, 'clusterId' | 'sentAt'> {
    return { clusterId: this.clusterId, sentAt: now() };
  }

  async #list({ path }: BridgedKey, recursive: boolean, { signal }: GetOptions): Promise<Snapshot> {
    const { entries, revision } = await this.#entries.list(path, { signal });
    const index = Number(revision);
    const node = await directoryOf(path, entries, { lockPrefix: this.#client.lockPrefix, recursive, index, signal });
    return { ...this.#answer(), node, index };
  }

  async #whyNotDeleted({ path }: BridgedKey, key: string, { dir, recursive }: Exact<DeleteOptions>): Promise<Error> {
    const { entries, revision } = await this.#client.requests.listings.readPages(path, {});
    if (!dir && !recursive) return etcdError(102, key, Number(revision));
    return etcdError(entries.length === 0 ? 100 : 108, key, Number(revision));
  }
}
