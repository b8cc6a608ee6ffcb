import { BothClient } from '../../../src/both/client.ts';
import type { Entry } from '../../../src/recipe/store.ts';
import { type UntilOptions, until } from '../../support/until.ts';
import { QueueView, type StoreClient } from './store-client.ts';
import { v2StoreClient } from './v2-store-client.ts';
import { v3StoreClient } from './v3-store-client.ts';

/**
 * Opens a client of both APIs for the tests of all stores.
 * @param seen the store whose queue the tests read and change, and whose requests they intercept
 */
export function bothStoreClient(etcd: string, seen: 'v2' | 'v3'): StoreClient {
  const client = new BothClient({ endpoints: etcd });
  const [v2, v3] = [v2StoreClient(client.v2), v3StoreClient(etcd, client.v3)];
  const indexOnV2 = async () => BigInt((await client.v2.get('/', { quorum: true })).index);
  return {
    get clusterId() {
      return client.clusterId;
    },
    store: client.store,
    close: (options) => client.close(options),
    view: (lock) => (seen === 'v2' ? v2.view(lock) : new NamedAsOnV2(v3.view(lock), v2.view(lock), indexOnV2)),
    intercept: (seen === 'v2' ? v2 : v3).intercept,
  };
}

/**
 * The queue on etcd v3, then the entries that wait on v2 for their turn to enter it. An entry that is in both queues has its key and rank on
 * v2, as for the code under test. One that was removed on v3 is not shown, although its twin stays until its owner leaves.
 */
class NamedAsOnV2 extends QueueView {
  readonly path: string;
  readonly #v3: QueueView;
  readonly #v2: QueueView;
  readonly #indexOnV2: () => Promise<bigint>;
  /** The entries on v2, by the v3 keys of their twins. */
  readonly #twins = new Map<string, Entry>();

  constructor(v3: QueueView, v2: QueueView, indexOnV2: () => Promise<bigint>) {
    super();
    this.#indexOnV2 = indexOnV2;
    this.path = v3.path;
    this.#v3 = v3;
    this.#v2 = v2;
  }

  async entries(): Promise<readonly Entry[]> {
    const [onV3, onV2] = [await this.#v3.entries(), await this.#v2.entries()];
    for (const { key, value } of onV3) {
      const twin = onV2.find((entry) => entry.value === value);
      if (twin) this.#twins.set(key, twin);
    }
    const entered = new Set([...this.#twins.values()].map(({ key }) => key));
    const named = onV3.map((entry) => {
      const { key, rank } = this.#twins.get(entry.key) ?? entry;
      return { ...entry, key, rank };
    });
    return [...named, ...onV2.filter(({ key }) => !entered.has(key))];
  }

  /** Returns the entry with a rank that is less than those of later entries on v2: the ranks of the two stores cannot be compared. */
  async put(value: string, ttl?: number): Promise<Entry> {
    const rank = await this.#indexOnV2();
    return { ...(await this.#v3.put(value, ttl)), rank };
  }

  /** Also waits until the first entry on v2 has entered the queue on v3: one that is appended there later is behind it. */
  override async untilLength(count: number, options?: UntilOptions): Promise<readonly Entry[]> {
    const entries = await super.untilLength(count, options);
    await until(
      async () => {
        const [first] = await this.#v2.entries();
        return !first || (await this.#v3.entries()).some((entry) => entry.value === first.value);
      },
      (hasEntered) => hasEntered,
      options,
    );
    return entries;
  }

  async remove(key: string): Promise<void> {
    const { view, name } = await this.#find(key);
    await view.remove(name);
  }

  async overwrite(key: string, value: string): Promise<void> {
    const { view, name } = await this.#find(key);
    await view.overwrite(name, value);
  }

  /** The entry on v3; if it waits on v2, the one there. */
  async #find(key: string): Promise<{ view: QueueView; name: string }> {
    await this.entries();
    for (const { key: name } of await this.#v3.entries())
      if (name === key || this.#twins.get(name)?.key === key) return { view: this.#v3, name };
    return { view: this.#v2, name: key };
  }
}
