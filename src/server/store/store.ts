import { randomBytes } from 'node:crypto';
import { type Clock, systemClock } from '../../base/time.ts';
import { etcdError } from '../../v2/error-codes.ts';
import type { CreateOptions, DeleteOptions, GetOptions, Node, SetOptions } from '../../v2/keys-api.ts';
import { baseName } from '../../v2/paths.ts';
import { isConditional } from '../../v2/requests.ts';
import type { Exact } from '../../v2/wire.ts';
import { Expiries } from './expiries.ts';
import { History, type StoreEvent } from './history.ts';
import * as tree from './tree.ts';
import { type Watcher, Watchers } from './watchers.ts';

/** Index of an empty store. A new etcd has already written data about itself. */
const FIRST_INDEX = 3;

/** In etcd, a new key whose expiry lies before this time never expires. */
const YEAR_2000 = Date.UTC(2000);

/**
 * The v2 store of etcd 3.4: what each operation does to the tree, which watchers it notifies, and how it fails. The
 * differential tests compare its answers with etcd's. Contains no code of etcd.
 */
export class Store {
  readonly clusterId = randomBytes(8).toString('hex');
  readonly #clock: Clock;
  readonly #root = tree.newRoot();
  readonly #history = new History(FIRST_INDEX);
  readonly #watchers = new Watchers();
  readonly #expiries: Expiries;
  #index = FIRST_INDEX;

  constructor(clock: Clock = systemClock) {
    this.#clock = clock;
    this.#expiries = new Expiries(clock, (stored) => this.#remove('expire', stored));
  }

  /** Index of the latest event. */
  get index(): number {
    return this.#index;
  }

  /** Number of watches in progress. */
  get watchers(): number {
    return this.#watchers.count;
  }

  get(key: string, options: GetOptions): Node {
    return tree.list(tree.find(this.#root, key, this.#index), options, this.#clock.now());
  }

  set(key: string, value: string | undefined, options: Exact<SetOptions>): StoreEvent {
    const { prevExist } = options;
    if (prevExist === false) return this.#create('create', key, value, options);
    if (isConditional(options)) return this.#compareAndSwap(key, value ?? '', options);
    return prevExist ? this.#update(key, value ?? '', options) : this.#set(key, value, options);
  }

  createInOrder(dir: string, value: string | undefined, options: Exact<CreateOptions>): StoreEvent {
    const name = String(this.#index + 1).padStart(20, '0');
    return this.#create('create', dir === '/' ? `/${name}` : `${dir}/${name}`, value, options);
  }

  delete(key: string, options: Exact<DeleteOptions>): StoreEvent {
    if (isConditional(options)) return this.#compareAndDelete(key, options);
    this.#refuseRoot(key);
    const stored = tree.find(this.#root, key, this.#index);
    if (stored.children && !options.dir && !options.recursive) throw this.#error(102, key);
    if (stored.children?.size && !options.recursive) throw this.#error(108, key);
    return this.#remove('delete', stored);
  }

  /**
   * Returns the first matching event in the history. If there is none, returns undefined and adds the watcher: its `notify`
   * is then called for the next matching event.
   * @throws {EtcdEventIndexCleared} if the history no longer contains the index `since`
   */
  watch(watcher: Watcher): StoreEvent | undefined {
    const past = this.#history.find(watcher.key, watcher.recursive, watcher.since);
    if (!past) this.#watchers.add(watcher);
    return past;
  }

  unwatch(watcher: Watcher): void {
    this.#watchers.remove(watcher);
  }

  /** Stops the expiry of keys. */
  stop(): void {
    this.#expiries.stop();
  }

  #set(key: string, value: string | undefined, options: Exact<SetOptions>): StoreEvent {
    if (!options.refresh) return this.#create('set', key, value, options);
    const { value: kept = '' } = tree.find(this.#root, key, this.#index);
    return this.#create('set', key, kept, options);
  }

  /** Creates a file or a directory. A `set` may replace a file. */
  #create(action: 'create' | 'set', key: string, value: string | undefined, options: Exact<SetOptions>): StoreEvent {
    this.#refuseRoot(key);
    const dir = tree.directoryOf(this.#root, key, this.#index);
    const name = baseName(key);
    const old = dir.children?.get(name);
    if (old && action === 'create') throw this.#error(105, key);
    if (old?.children) throw this.#error(102, key);
    const now = this.#clock.now();
    const prevNode = old && tree.describe(old, now);
    if (old) this.#expiries.forget(old);
    const stored = tree.add(dir, name, this.#index + 1, options.dir ? undefined : (value ?? ''));
    const at = expiryAfter(options.ttl, now);
    this.#expiries.set(stored, at !== undefined && at < YEAR_2000 ? undefined : at);
    return this.#record(action, tree.describe(stored, now), prevNode, options.refresh);
  }

  #update(key: string, value: string, options: Exact<SetOptions>): StoreEvent {
    this.#refuseRoot(key);
    const stored = tree.find(this.#root, key, this.#index);
    if (stored.children && value !== '') throw this.#error(102, key);
    return this.#write('update', stored, value, options);
  }

  #compareAndSwap(key: string, value: string, options: Exact<SetOptions>): StoreEvent {
    this.#refuseRoot(key);
    const stored = tree.find(this.#root, key, this.#index);
    if (stored.children) throw this.#error(102, key);
    this.#compare(stored, options);
    return this.#write('compareAndSwap', stored, value, options);
  }

  #compareAndDelete(key: string, options: Exact<DeleteOptions>): StoreEvent {
    const stored = tree.find(this.#root, key, this.#index);
    // For the root, the cause is empty in etcd's error.
    if (stored.children) throw this.#error(102, key === '/' ? '' : key);
    this.#compare(stored, options);
    return this.#remove('compareAndDelete', stored);
  }

  #compare(stored: tree.StoredNode, { prevValue, prevIndex }: Exact<DeleteOptions>): void {
    const otherValue = prevValue !== undefined && prevValue !== stored.value;
    const otherIndex = prevIndex !== undefined && prevIndex !== stored.modifiedIndex;
    const value = `[${prevValue ?? ''} != ${stored.value}]`;
    const index = `[${prevIndex ?? 0} != ${stored.modifiedIndex}]`;
    if (otherValue && otherIndex) throw this.#error(101, `${value} ${index}`);
    if (otherValue) throw this.#error(101, value);
    if (otherIndex) throw this.#error(101, index);
  }

  #write(action: string, stored: tree.StoredNode, value: string, { ttl, refresh }: Exact<SetOptions>): StoreEvent {
    const now = this.#clock.now();
    const prevNode = tree.describe(stored, now);
    const index = this.#index + 1;
    // A directory keeps its `modifiedIndex`; only the event has the new one.
    if (!stored.children) {
      if (!refresh) stored.value = value;
      stored.modifiedIndex = index;
    }
    this.#expiries.set(stored, expiryAfter(ttl, now));
    return this.#record(action, { ...tree.describe(stored, now), modifiedIndex: index }, prevNode, refresh);
  }

  #remove(action: 'delete' | 'compareAndDelete' | 'expire', stored: tree.StoredNode): StoreEvent {
    const prevNode = tree.describe(stored, this.#clock.now());
    const { key, dir, createdIndex } = prevNode;
    const node = { key, dir, createdIndex, modifiedIndex: this.#index + 1, nodes: [] };
    tree.detach(stored);
    const gone = tree.withDescendants(stored);
    for (const each of gone) this.#expiries.forget(each);
    const event = this.#record(action, node, prevNode);
    for (const each of gone) this.#watchers.removed(each.key, event);
    return event;
  }

  #record(action: string, node: Node, prevNode?: Node, silent = false): StoreEvent {
    const event = { action, node, ...(prevNode ? { prevNode } : {}), silent };
    this.#index = node.modifiedIndex;
    this.#history.add(event);
    if (!silent) this.#watchers.changed(event);
    return event;
  }

  #refuseRoot(key: string): void {
    if (key === '/') throw this.#error(107, '/');
  }

  #error(errorCode: number, cause: string) {
    return etcdError(errorCode, cause, this.#index);
  }
}

/**
 * Returns when a TTL in seconds ends, in milliseconds since the epoch. As in etcd, nanoseconds are counted in 64 bits, so a
 * time after the year 2262 wraps around to the past.
 */
function expiryAfter(ttl: number | bigint | null | undefined, now: number): number | undefined {
  if (ttl === undefined || ttl === null) return undefined;
  const at = BigInt(now) + BigInt(ttl) * 1000n;
  return Number(BigInt.asIntN(64, at * 1_000_000n) / 1_000_000n);
}
