import { EtcdKeyNotFound } from '../../../src/errors.ts';
import type { Entry } from '../../../src/recipe/store.ts';
import type { KeysApi, Node } from '../../../src/v2/keys-api.ts';
import type { ClosableKeys } from '../keys-api/store.ts';
import { interceptable } from './interceptable.ts';
import { QueueView, type StoreClient } from './store-client.ts';

/** Returns a client of etcd v2, or of any other store behind a `KeysApi`, for the tests of all stores. */
export const v2StoreClient = (keys: ClosableKeys): StoreClient => ({
  get clusterId() {
    return keys.clusterId;
  },
  store: keys.store,
  close: (options) => keys.close(options),
  view: (lock) => new V2QueueView(keys, lock),
  intercept: interceptable<KeysApi>(keys, {
    get: 'read',
    set: 'overwrite',
    createInOrder: 'append',
    renew: 'renew',
    delete: 'remove',
    watch: 'wait',
  }),
});

class V2QueueView extends QueueView {
  readonly path: string;
  readonly #keys: KeysApi;

  constructor(keys: KeysApi, lock: string) {
    super();
    this.path = `${keys.lockPrefix}/${lock}`;
    this.#keys = keys;
  }

  /** Leaves out directories: they are the queues of locks whose names begin with this one. */
  async entries(): Promise<readonly Entry[]> {
    try {
      const { node } = await this.#keys.get(this.path, { sorted: true, quorum: true });
      return node.nodes.filter(({ dir }) => !dir).map(entryOf);
    } catch (error) {
      if (error instanceof EtcdKeyNotFound) return [];
      throw error;
    }
  }

  async put(value: string, ttl = 600): Promise<Entry> {
    return entryOf((await this.#keys.createInOrder(this.path, value, { ttl })).node);
  }

  async remove(key: string): Promise<void> {
    await this.#keys.delete(key);
  }

  async overwrite(key: string, value: string): Promise<void> {
    await this.#keys.set(key, value);
  }
}

const entryOf = ({ key, value = '', ttl }: Node): Entry => ({
  key,
  value,
  rank: BigInt(key.slice(key.lastIndexOf('/') + 1)),
  ttl,
});
