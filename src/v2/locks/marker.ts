import { EtcdAlreadyExist, EtcdCompareFailed, EtcdKeyNotFound } from '../../errors.ts';
import type { AdvanceOptions, Marker, MarkerStore, StoreCall } from '../../recipe/store.ts';
import type { KeysApi, Node } from '../keys-api.ts';
import { readKey } from './reading.ts';

/** A {@link MarkerStore} on etcd v2: a file whose TTL is set by each write. */
export class V2Marker implements MarkerStore {
  readonly key: string;
  readonly #keys: KeysApi;

  constructor(keys: KeysApi, key: string) {
    this.#keys = keys;
    this.key = key;
  }

  async read({ signal }: StoreCall): Promise<Marker | undefined> {
    const found = await readKey(this.#keys, this.key, { signal });
    return found && markerOf(found.node);
  }

  async advance({ from, to, ttl }: AdvanceOptions, { signal }: StoreCall): Promise<Marker | undefined> {
    const condition = from ? { prevIndex: Number(from.rank) } : { prevExist: false };
    try {
      return markerOf((await this.#keys.set(this.key, to, { ...condition, ttl, signal })).node);
    } catch (error) {
      if (!isRefused(error)) throw error;
      // Perhaps refused because an earlier request of this call, or of an earlier call, was carried out.
      return this.read({ signal });
    }
  }

  async remove({ rank }: Marker, { signal }: StoreCall): Promise<boolean> {
    try {
      await this.#keys.delete(this.key, { prevIndex: Number(rank), signal });
      return true;
    } catch (error) {
      if (!isRefused(error)) throw error;
      // Perhaps gone because an earlier request of this call was carried out.
      return error instanceof EtcdKeyNotFound && error.outcomeUnknown;
    }
  }
}

const isRefused = (error: unknown): boolean =>
  error instanceof EtcdCompareFailed || error instanceof EtcdAlreadyExist || error instanceof EtcdKeyNotFound;

const markerOf = ({ value = '', modifiedIndex }: Node): Marker => ({ value, rank: BigInt(modifiedIndex) });
