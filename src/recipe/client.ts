import type { LockStore } from './store.ts';

/** The client that a `Lock` or `LockManager` uses: an `EtcdClient`. */
export interface LockClient {
  /** Id of the cluster that answered last; undefined before the first answer. */
  readonly clusterId: string | undefined;
  /**
   * Where the queues live.
   * @internal
   */
  readonly store: LockStore;
}
