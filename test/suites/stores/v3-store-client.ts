import { randomBytes } from 'node:crypto';
import type { Entry } from '../../../src/recipe/store.ts';
import { V3Client } from '../../../src/v3/client.ts';
import { base64, entriesBelow, gateway } from '../../support/gateway.ts';
import { interceptable } from './interceptable.ts';
import { QueueView, type StoreClient } from './store-client.ts';

/** Returns a client of etcd v3 for the tests of all stores. */
export function v3StoreClient(etcd: string, client = new V3Client({ endpoints: etcd })): StoreClient {
  const { entries, listings, leases, watches } = client.requests;
  const interceptors = [
    interceptable(entries, {
      get: 'read',
      neighbours: 'read',
      append: 'append',
      move: 'renew',
      write: 'overwrite',
      delete: 'remove',
      remove: 'remove',
    }),
    interceptable(listings, { read: 'read', first: 'read' }),
    interceptable(leases, { renew: 'renew' }),
    interceptable(watches, { changed: 'wait', vacated: 'wait' }),
  ];
  return {
    get clusterId() {
      return client.clusterId;
    },
    store: client.store,
    close: (options) => client.close(options),
    view: (lock) => new V3QueueView(etcd, client.store.queue(lock).path),
    intercept: (interceptor) => {
      for (const intercept of interceptors) intercept(interceptor);
    },
  };
}

class V3QueueView extends QueueView {
  readonly path: string;
  readonly #etcd: string;

  constructor(etcd: string, path: string) {
    super();
    this.#etcd = etcd;
    this.path = path;
  }

  /** Entries of locks whose names begin with this one's are not part of the queue. */
  async entries(): Promise<readonly Entry[]> {
    const below = await entriesBelow(`${this.path}/`, this.#etcd);
    return below.filter(({ key }) => !key.includes('/', this.path.length + 1));
  }

  async put(value: string, ttl = 600): Promise<Entry> {
    const { ID } = await gateway('/lease/grant', { ID: '0', TTL: ttl }, this.#etcd);
    const key = `${this.path}/${randomBytes(16).toString('hex')}`;
    await gateway('/kv/put', { key: base64(key), value: base64(value), lease: ID }, this.#etcd);
    const [entry] = (await this.entries()).filter((one) => one.key === key);
    if (!entry) throw new Error(`${key} is not there`);
    return entry;
  }

  async remove(key: string): Promise<void> {
    await gateway('/kv/deleterange', { key: base64(key) }, this.#etcd);
  }

  async overwrite(key: string, value: string): Promise<void> {
    await gateway('/kv/put', { key: base64(key), value: base64(value) }, this.#etcd);
  }
}
