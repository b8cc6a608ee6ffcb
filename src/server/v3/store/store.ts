import type { Clock } from '../../../base/time.ts';
import type { EtcdVersion } from '../../version.ts';
import type * as api from '../messages.ts';
import type { Change } from './history.ts';
import { KeyValues } from './key-values.ts';
import { Leases } from './leases.ts';
import { type Ranged, readRange } from './range.ts';
import * as transaction from './transaction.ts';
import { type Watcher, Watchers } from './watchers.ts';

export interface V3StoreOptions {
  readonly clock: Clock;
  /** Number of changes that are kept for reads and watches of the past. */
  readonly history: number;
  /** The version of etcd to imitate. */
  readonly version: EtcdVersion;
}

/**
 * The store of etcd v3: keys with their past, leases and watchers. The differential tests compare its answers with etcd's. Contains no
 * code of etcd.
 */
export class V3Store {
  readonly leases: Leases;
  readonly #keys: KeyValues;
  readonly #watchers = new Watchers();
  readonly #stored: transaction.Stored;

  constructor({ clock, history, version }: V3StoreOptions) {
    this.leases = new Leases(clock, (keys) => this.#removeAll(keys));
    this.#keys = new KeyValues({
      history,
      onLease: (key, before, after) => this.leases.move(key, before, after),
      onChanges: (revision, changes) => this.#watchers.report(revision, changes),
    });
    this.#stored = { keys: this.#keys, hasLease: (id) => this.leases.has(id), version };
  }

  get revision(): bigint {
    return this.#keys.revision;
  }

  /** The oldest revision that can be read; -1: all. */
  get compacted(): bigint {
    return this.#keys.compacted;
  }

  /** Number of watchers. */
  get watchers(): number {
    return this.#watchers.size;
  }

  // The requests below are valid by themselves: their checks have passed.

  /** @throws {EtcdV3Refusal} as etcd does, like the other requests */
  range(request: api.RangeRequest): Ranged {
    return readRange(this.#keys, request);
  }

  put(request: api.PutRequest): api.PutResponse {
    return transaction.runPut(this.#stored, request);
  }

  deleteRange(request: api.DeleteRangeRequest): api.DeleteRangeResponse {
    return transaction.runDelete(this.#stored, request);
  }

  txn(request: api.TxnRequest): api.TxnResponse {
    return transaction.runTxn(this.#stored, request);
  }

  compact({ revision }: api.CompactionRequest): void {
    this.#keys.compact(revision);
  }

  /**
   * Returns the changes of each revision from `revision` on, of at most `limit` revisions.
   * @throws {EtcdV3Refusal} if they were compacted
   */
  since(revision: bigint, limit: number): readonly (readonly Change[])[] {
    return this.#keys.since(revision, limit);
  }

  /** Reports changes from now on, until {@link V3Store.unwatch}. */
  watch(watcher: Watcher): void {
    this.#watchers.add(watcher);
  }

  unwatch(watcher: Watcher): void {
    this.#watchers.remove(watcher);
  }

  /** Stops the expiry of leases. */
  stop(): void {
    this.leases.stop();
  }

  #removeAll(keys: readonly string[]): void {
    this.#keys.write((write) => {
      for (const key of keys) write.delete({ key, range_end: '' });
    });
  }
}
