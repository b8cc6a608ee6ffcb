import type { Entry } from '../../../src/recipe/store.ts';
import { interceptable } from './interceptable.ts';
import { MemoryClient, type SharedMemory } from './memory-client.ts';
import { QueueView, type StoreClient } from './store-client.ts';

/** Opens a client of the memory for the tests of all stores. */
export function memoryStoreClient(memory: SharedMemory): StoreClient {
  const client = new MemoryClient(memory);
  return {
    clusterId: client.clusterId,
    store: client.store,
    close: (options) => client.close(options),
    view: (lock) => new MemoryQueueView(memory, client.store.queue(lock).path),
    intercept: interceptable(client, {
      read: 'read',
      append: 'append',
      advance: 'overwrite',
      renew: 'renew',
      remove: 'remove',
      changed: 'wait',
    }),
  };
}

class MemoryQueueView extends QueueView {
  readonly path: string;
  readonly #memory: SharedMemory;

  constructor(memory: SharedMemory, path: string) {
    super();
    this.#memory = memory;
    this.path = path;
  }

  async entries(): Promise<readonly Entry[]> {
    return this.#memory.entries().filter(({ path }) => path === this.path);
  }

  async put(value: string, ttl = 600): Promise<Entry> {
    return this.#memory.append(this.path, value, ttl);
  }

  async remove(key: string): Promise<void> {
    this.#memory.remove(key);
  }

  async overwrite(key: string, value: string): Promise<void> {
    const entry = this.#memory.entries().find((one) => one.key === key);
    if (entry) this.#memory.write({ ...entry, value }, null);
  }
}
