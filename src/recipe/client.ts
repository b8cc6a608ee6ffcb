import type { LockStore } from './store.ts';

/** What a `Lock` or `LockManager` needs of its client. `EtcdClient` implements it. */
export interface LockClient {
  /** Id of the cluster that answered last; undefined before the first answer. */
  readonly clusterId: string | undefined;
  /**
   * Where the queues live.
   * @internal
   */
  readonly store: LockStore;
}
