import { randomBytes } from 'node:crypto';
import { etcdError } from '../../errors.ts';
import type { CreateOptions, DeleteOptions, GetOptions, Node, SetOptions } from '../../v2/keys-api.ts';
import { baseName } from '../../v2/paths.ts';
import { isConditional } from '../../v2/requests.ts';
import type { Exact } from '../../v2/wire.ts';
import { type Clock, systemClock } from './clock.ts';
import { Expiries } from './expiries.ts';
import { History, type StoreEvent } from './history.ts';
import * as tree from './tree.ts';
import { type Watcher, Watchers } from './watchers.ts';

/** A fresh etcd has written that much about itself. */
const FIRST_INDEX = 3;

/** A new key that is to expire before is one that never does, to etcd. */
const YEAR_2000 = Date.UTC(2000);

/**
 * What each operation does to the tree, which watchers it wakes, and how it fails: as in etcd 3.4's v2 store, whose answers
 * the differential tests compare. Only behaviour is taken over; none of etcd's code is used.
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
    this.#expiries = new Expiries(clock, (entry) => this.#remove('expire', entry));
  }

  /** Index of the latest event. */
  get index(): number {
    return this.#index;
  }

  /** How many wait for an event. */
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
    const entry = tree.find(this.#root, key, this.#index);
    if (entry.children && !options.dir && !options.recursive) throw this.#error(102, key);
    if (entry.children?.size && !options.recursive) throw this.#error(108, key);
    return this.#remove('delete', entry);
  }

  /**
   * Waits for the next event that the watcher asks for.
   * @returns an event of the past; undefined when there is none, and `notify` will be called
   */
  watch(watcher: Watcher): StoreEvent | undefined {
    const past = this.#history.find(watcher.key, watcher.recursive, watcher.since);
    if (!past) this.#watchers.add(watcher);
    return past;
  }

  unwatch(watcher: Watcher): void {
    this.#watchers.remove(watcher);
  }

  /** Nothing expires any more. */
  stop(): void {
    this.#expiries.stop();
  }

  #set(key: string, value: string | undefined, options: Exact<SetOptions>): StoreEvent {
    if (!options.refresh) return this.#create('set', key, value, options);
    const { value: kept = '' } = tree.find(this.#root, key, this.#index);
    return this.#create('set', key, kept, options);
  }

  /** Makes a file or a directory; a `set` may replace a file. */
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
    const entry = tree.add(dir, name, this.#index + 1, options.dir ? undefined : (value ?? ''));
    const at = expiryAfter(options.ttl, now);
    this.#expiries.set(entry, at !== undefined && at < YEAR_2000 ? undefined : at);
    return this.#happened(action, tree.describe(entry, now), prevNode, options.refresh);
  }

  #update(key: string, value: string, options: Exact<SetOptions>): StoreEvent {
    this.#refuseRoot(key);
    const entry = tree.find(this.#root, key, this.#index);
    if (entry.children && value !== '') throw this.#error(102, key);
    return this.#write('update', entry, value, options);
  }

  #compareAndSwap(key: string, value: string, options: Exact<SetOptions>): StoreEvent {
    this.#refuseRoot(key);
    const entry = tree.find(this.#root, key, this.#index);
    if (entry.children) throw this.#error(102, key);
    this.#compare(entry, options);
    return this.#write('compareAndSwap', entry, value, options);
  }

  #compareAndDelete(key: string, options: Exact<DeleteOptions>): StoreEvent {
    const entry = tree.find(this.#root, key, this.#index);
    // etcd names no cause where that would be the root.
    if (entry.children) throw this.#error(102, key === '/' ? '' : key);
    this.#compare(entry, options);
    return this.#remove('compareAndDelete', entry);
  }

  #compare(entry: tree.Entry, { prevValue, prevIndex }: Exact<DeleteOptions>): void {
    const otherValue = prevValue !== undefined && prevValue !== entry.value;
    const otherIndex = prevIndex !== undefined && prevIndex !== entry.modifiedIndex;
    const value = `[${prevValue ?? ''} != ${entry.value}]`;
    const index = `[${prevIndex ?? 0} != ${entry.modifiedIndex}]`;
    if (otherValue && otherIndex) throw this.#error(101, `${value} ${index}`);
    if (otherValue) throw this.#error(101, value);
    if (otherIndex) throw this.#error(101, index);
  }

  #write(action: string, entry: tree.Entry, value: string, { ttl, refresh }: Exact<SetOptions>): StoreEvent {
    const now = this.#clock.now();
    const prevNode = tree.describe(entry, now);
    const index = this.#index + 1;
    // A directory keeps its own index; the event has the new one all the same.
    if (!entry.children) {
      if (!refresh) entry.value = value;
      entry.modifiedIndex = index;
    }
    this.#expiries.set(entry, expiryAfter(ttl, now));
    return this.#happened(action, { ...tree.describe(entry, now), modifiedIndex: index }, prevNode, refresh);
  }

  #remove(action: 'delete' | 'compareAndDelete' | 'expire', entry: tree.Entry): StoreEvent {
    const prevNode = tree.describe(entry, this.#clock.now());
    const { key, dir, createdIndex } = prevNode;
    const node = { key, dir, createdIndex, modifiedIndex: this.#index + 1, nodes: [] };
    tree.detach(entry);
    const gone = tree.withDescendants(entry);
    for (const each of gone) this.#expiries.forget(each);
    const event = this.#happened(action, node, prevNode);
    for (const each of gone) this.#watchers.removed(each.key, event);
    return event;
  }

  #happened(action: string, node: Node, prevNode?: Node, silent = false): StoreEvent {
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

/** When that many seconds are over. As in etcd, which counts nanoseconds in 64 bits, the far future lies in the past. */
function expiryAfter(ttl: number | bigint | null | undefined, now: number): number | undefined {
  if (ttl === undefined || ttl === null) return undefined;
  const at = BigInt(now) + BigInt(ttl) * 1000n;
  return Number(BigInt.asIntN(64, at * 1_000_000n) / 1_000_000n);
}
