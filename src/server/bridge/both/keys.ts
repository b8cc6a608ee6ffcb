import { now } from '../../../base/time.ts';
import { EtcdCompareFailed, EtcdKeyNotFound } from '../../../errors.ts';
import { bridgedValue, isBridged } from '../../../recipe/entries/bridged-value.ts';
import type { V2Client } from '../../../v2/client.ts';
import { etcdError } from '../../../v2/error-codes.ts';
import type {
  Append,
  Change,
  CreateOptions,
  DeleteOptions,
  GetOptions,
  KeyEvent,
  Node,
  SetOptions,
  Snapshot,
  WatchOptions,
} from '../../../v2/keys-api.ts';
import { isConditional } from '../../../v2/requests.ts';
import { type Exact, hasBytes } from '../../../v2/wire.ts';
import type { V3Client } from '../../../v3/client.ts';
import type { ServedKeys } from '../../served-keys.ts';
import { translated } from '../errors.ts';
import { eventOf, firstOf, translatedEvents } from '../events.ts';
import type { LeaseCounts } from '../lease-counts.ts';
import { retried } from '../retry.ts';
import { checkLength, type EntryKey, nameOf, refused } from '../target.ts';
import { BridgedEntries } from '../v3/entries.ts';
import { compare, MOST_TRIES, renewGuarded, secondsOf } from '../writes.ts';
import { type BothKey, bothKey, clientNode, clientTree, placeholderIn, withPlaceholder } from './nodes.ts';
import { BothPolls } from './polls.ts';
import { BothQueues } from './queues.ts';

/** Seconds within which the renewal of an entry normally follows that of its twin. */
const RENEWED_WITHIN = 1;

/**
 * Locks that clients of etcd v2 hold on both v2 and v3: see {@link BothQueues}. Entries and indexes are those of v2. While an entry
 * that holds the lock on v2 waits for others on v3, its queue shows an extra entry before it: see {@link placeholderIn}. Keeps no state.
 */
export class BothKeys implements ServedKeys {
  readonly #v2: V2Client;
  readonly #v3: V3Client;
  readonly #queues: BothQueues;
  readonly #polls: BothPolls;

  constructor(v2: V2Client, v3: V3Client, leases: LeaseCounts) {
    this.#v2 = v2;
    this.#v3 = v3;
    this.#queues = new BothQueues(v2, v3, new BridgedEntries(v3, leases));
    this.#polls = new BothPolls(v2, v3, this.#queues);
  }

  get clusterId(): string | undefined {
    return this.#v2.clusterId ?? this.#v3.clusterId;
  }

  get(key: string, { recursive = false, signal }: GetOptions = {}): Promise<Snapshot> {
    const call = async () => {
      const at = this.#at(key);
      if (at.kind === 'prefix') return this.#shown(await this.#queues.read(key, { recursive, signal }), signal);
      if (at.kind === 'entry') return this.#shown(await this.#find(at, { signal }), signal);
      const settled = await this.#queues.settled(at.path, signal);
      const { node, ...rest } = await this.#shown(settled.snapshot, signal);
      const placeholder = placeholderIn(at.path, settled);
      if (at.kind === 'queue') return { ...rest, node: { ...node, nodes: withPlaceholder(node.nodes, placeholder) } };
      if (placeholder?.key === key) return { ...rest, node: placeholder };
      throw etcdError(100, key, rest.index);
    };
    return translated(() => retried(call, signal));
  }

  createInOrder(key: string, value = '', { ttl, dir, signal }: Exact<CreateOptions> = {}): Promise<Append> {
    return translated(async () => {
      const at = this.#at(key);
      if (at.kind !== 'queue' || dir || hasBytes(value)) throw refused(`${key} cannot be created`);
      checkLength(value);
      const seconds = secondsOf(ttl);
      const { node, ...change } = await this.#append(at.path, value, seconds, signal);
      return { ...change, action: 'create', node: clientNode(node), listing: Promise.resolve(undefined) };
    });
  }

  /** Renews an entry. Does not re-create an entry that has expired. */
  set(key: string, value = '', options: Exact<SetOptions> = {}): Promise<Change> {
    const { signal } = options;
    const call = async () => {
      const at = this.#at(key);
      if (at.kind !== 'entry' || options.dir || options.prevExist === false) throw refused(`${key} cannot be set`);
      const find = async () => {
        const { node, index } = await this.#findOrEnd(at, { signal });
        return { own: node, ...comparable(clientNode(node)), index };
      };
      const write = async (node: Node, ttl: number | null) => {
        const prevNode = clientNode(node);
        try {
          const change = await this.#write(node, prevNode.value ?? '', ttl, options.refresh);
          return { ...change, node: clientNode(change.node), prevNode };
        } catch (error) {
          if (error instanceof EtcdCompareFailed) return undefined;
          throw error;
        }
      };
      return renewGuarded(key, value, options, { find, write });
    };
    return translated(() => retried(call, signal));
  }

  delete(key: string, options: Exact<DeleteOptions> = {}): Promise<Change> {
    const call = async () => {
      const at = this.#at(key);
      if (at.kind !== 'entry') throw refused(`${key} cannot be deleted`);
      const { node, index } = await this.#findOrEnd(at, {});
      const own = clientNode(node);
      compare(comparable(own), options, index);
      const prevIndex = options.prevIndex === undefined ? undefined : node.modifiedIndex;
      // First remove the twin: otherwise the next client on v2 would still find it on v3, and wait. But a removal with `prevIndex`
      // may fail, and the entry then still needs its twin.
      if (prevIndex === undefined) await this.#queues.removeTwin(key);
      const change = await this.#v2.delete(key, { prevIndex }).catch(async (error: unknown) => {
        // An earlier request of this call has removed the entry, and its answer was lost.
        if (error instanceof EtcdKeyNotFound) await this.#queues.removeTwin(key);
        throw error;
      });
      // While the entry was still on v2, another bridge may have created its twin again.
      await this.#queues.removeTwin(key);
      const action = isConditional(options) ? 'compareAndDelete' : 'delete';
      return { ...change, action, node: clientNode(change.node), prevNode: own };
    };
    return translated(() => retried(call));
  }

  watch(key: string, options: WatchOptions = {}): Promise<KeyEvent | undefined> {
    return translated(() => firstOf(this.#events(key, options)));
  }

  stream(key: string, options: WatchOptions = {}): AsyncIterable<KeyEvent> {
    return translatedEvents(() => this.#events(key, options));
  }

  #events(key: string, options: WatchOptions): AsyncIterable<KeyEvent> {
    const at = this.#at(key);
    if (at.kind === 'entry') return eventOf(this.#polls.entry(at, options));
    if (at.kind === 'placeholder') return eventOf(this.#polls.placeholder(at.path, key, options));
    return this.#polls.below(at.path, options);
  }

  async #shown({ node, ...rest }: Snapshot, signal: GetOptions['signal']): Promise<Snapshot> {
    return { ...rest, node: await clientTree(node, this.#v2.lockPrefix, signal) };
  }

  #at(key: string): BothKey {
    return bothKey(key, this.#v2.lockPrefix);
  }

  /** Appends an entry, or renews the one with this value: after a lost answer, python-etcd repeats the append at the next member. */
  async #append(path: string, value: string, ttl: number | null, signal: GetOptions['signal']): Promise<Change> {
    for (let tries = 1; ; tries += 1) {
      const find = () => this.#withValue(path, bridgedValue(value), { signal });
      const own = value === '' ? undefined : await retried(find, signal);
      if (!own) {
        // The client may have hung up while this process was suspended: let the event loop notice that.
        await new Promise(setImmediate);
        return this.#v2.createInOrder(path, bridgedValue(value), { ttl, signal });
      }
      try {
        return await retried(() => this.#write(own, value, ttl, true), signal);
      } catch (error) {
        // The entry has changed or expired since it was read.
        const isOld = error instanceof EtcdCompareFailed || error instanceof EtcdKeyNotFound;
        if (!isOld || tries === MOST_TRIES) throw error;
      }
    }
  }

  /**
   * Reads an entry. If the entry is gone, removes its twin, which may be left over.
   * @throws {EtcdKeyNotFound} if the entry is gone
   */
  async #findOrEnd(at: EntryKey, options: Pick<GetOptions, 'signal'>): Promise<Snapshot> {
    try {
      return await this.#find(at, options);
    } catch (error) {
      if (error instanceof EtcdKeyNotFound) await this.#queues.removeTwin(`${at.path}/${nameOf(at.rank)}`);
      throw error;
    }
  }

  /** @throws {EtcdKeyNotFound} if the entry is gone */
  #find({ path, rank }: EntryKey, options: Pick<GetOptions, 'signal'>): Promise<Snapshot> {
    return this.#v2.get(`${path}/${nameOf(rank)}`, { quorum: true, ...options });
  }

  /** Returns the entry with this value, if there is one. Each value has at most one entry. */
  async #withValue(path: string, value: string, options: Pick<GetOptions, 'signal'>): Promise<Node | undefined> {
    const { node: queue } = await this.#queues.read(path, options);
    return queue.nodes.find((node) => node.value === value);
  }

  /**
   * Renews the twin of an entry, then the entry with this TTL if it was not written since it was read.
   * @param value the value that the client has given, without the mark of a bridge
   * @param silent whether clients that watch the entry need no event
   */
  async #write(node: Node, value: string, ttl: number | null, silent = false): Promise<Change> {
    const { key, modifiedIndex: prevIndex } = node;
    const isOwn = isBridged(node.value ?? '');
    const readAt = now();
    // First the twin: if this process dies in between, or v3 fails, the entry must not outlive its twin.
    const renewed = { key, ttl: ttl ?? undefined };
    let twin = await this.#queues.prolong(renewed, RENEWED_WITHIN);
    const change =
      isOwn && silent
        ? await this.#v2.renew(key, { prevValue: node.value ?? '', prevIndex, ttl })
        : // Adds the mark if the client has found an entry that was created without a bridge.
          await this.#v2.set(key, bridgedValue(value), { ttl, prevIndex });
    // If there was no twin, a bridge that had read the earlier TTL may have created one in the meantime.
    if (!twin || now() - readAt > RENEWED_WITHIN * 1000) twin = await this.#queues.prolong(renewed, 0);
    if (twin && twin.lease === undefined && ttl !== null) await this.#queues.giveTtl(key);
    return change;
  }
}

const comparable = ({ value = '', modifiedIndex }: Node) => ({ value, modified: BigInt(modifiedIndex) });
