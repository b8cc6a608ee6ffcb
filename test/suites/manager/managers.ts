import { randomUUID } from 'node:crypto';
import { vi } from 'vitest';
import { addAbortListener, type Source } from '../../../src/cancellation.ts';
import { EtcdKeyNotFound } from '../../../src/errors.ts';
import { LockManager } from '../../../src/manager/manager.ts';
import type { LockManagerOptions } from '../../../src/manager/options.ts';
import type { KeysApi, Node } from '../../../src/v2/keys-api.ts';
import { until } from '../../support/until.ts';
import { type ClosableKeys, type OpenKeys, storeTest } from '../keys-api/store.ts';

/** A client of its own and a manager on it: as good as a process of its own, but for what it knows of identities. */
export interface Process {
  readonly keys: ClosableKeys;
  readonly locks: LockManager;
}

/** The queue of a lock, as an onlooker sees it. */
export class QueueView {
  readonly path: string;
  readonly #keys: KeysApi;

  constructor(keys: KeysApi, name: string) {
    this.#keys = keys;
    this.path = `${keys.lockPrefix}/${name}`;
  }

  async entries(): Promise<readonly Node[]> {
    try {
      return (await this.#keys.get(this.path, { sorted: true, quorum: true })).node.nodes;
    } catch (error) {
      if (error instanceof EtcdKeyNotFound) return [];
      throw error;
    }
  }

  async values(): Promise<(string | undefined)[]> {
    return (await this.entries()).map(({ value }) => value);
  }

  /** Waits until that many stand in it. */
  untilLength(count: number): Promise<readonly Node[]> {
    return until(
      () => this.entries(),
      (entries) => entries.length === count,
    );
  }

  /** Queues an entry nobody looks after. */
  async put(value: string, ttl = 600): Promise<Node> {
    return (await this.#keys.createInOrder(this.path, value, { ttl })).node;
  }

  async remove(key: string): Promise<void> {
    await this.#keys.delete(key);
  }

  async overwrite(key: string, value: string): Promise<void> {
    await this.#keys.set(key, value);
  }
}

/** A test with a lock name that no other test uses, and processes that want that lock. */
export const managerTest = (open: OpenKeys) =>
  storeTest(open)
    .extend('lockName', () => `contract-${randomUUID()}`)
    .extend('queue', ({ keys, lockName }) => new QueueView(keys, lockName))
    .extend('makeProcess', ({ openAnother }) => async (options?: LockManagerOptions): Promise<Process> => {
      const keys = await openAnother();
      return { keys, locks: new LockManager(keys, options) };
    })
    .extend('a', ({ makeProcess }) => makeProcess())
    .extend('b', ({ makeProcess }) => makeProcess())
    /** Closed by nobody. */
    .extend('openUnclosed', () => async () => open());

export type ManagerTest = ReturnType<typeof managerTest>;

/** Tells which calls were made on this client since. */
export function callsOn(keys: KeysApi): () => string[] {
  const methods = ['get', 'set', 'createInOrder', 'renew', 'delete', 'watch'] as const;
  const spies = methods.map((method) => [method, vi.spyOn(keys, method)] as const);
  return () => spies.flatMap(([method, { mock }]) => mock.calls.map(() => method));
}

/** Lets renewals of this client go out and never be answered. Tells the signals they were given. */
export function hangRenewals(keys: KeysApi): Source[] {
  const signals: Source[] = [];
  vi.spyOn(keys, 'renew').mockImplementation((_, { signal }) => {
    if (signal) signals.push(signal);
    return new Promise((_, reject) => signal && addAbortListener(signal, reject));
  });
  return signals;
}

/** Resolves to the key that the next wait of this client is for: the queue has been read by then, and the lock is taken. */
export function nextWatch(keys: KeysApi): Promise<string> {
  const watch = keys.watch.bind(keys);
  return new Promise((resolve) => {
    vi.spyOn(keys, 'watch').mockImplementationOnce((key, options) => {
      resolve(key);
      return watch(key, options);
    });
  });
}
