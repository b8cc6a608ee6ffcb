import type { PendingWork } from '../../base/pending-work.ts';
import { markerKey } from '../../recipe/entries/marker-key.ts';
import type { LockStore, MarkerStore, Queue, QueueStore } from '../../recipe/store.ts';
import type { KeysApi } from '../keys-api.ts';
import { checkLockName } from '../paths.ts';
import { remove } from './entry-requests.ts';
import { V2Marker } from './marker.ts';
import { readQueue, type V2Entry } from './reading.ts';
import { readQueues } from './survey.ts';
import { V2Surveyor } from './surveyor.ts';
import { V2Ticket } from './ticket.ts';
import { UnusedDirectories } from './unused-directories.ts';

/** Queues of locks on etcd v2, compatible with python-etcd: the lock `name` is the directory `<lockPrefix>/<name>`. */
export class V2LockStore implements LockStore {
  readonly surveyor: V2Surveyor;
  readonly #keys: KeysApi;
  readonly #unused: UnusedDirectories;

  /** @param unused removes the directories of unused locks */
  constructor(keys: KeysApi, unused: UnusedDirectories = new UnusedDirectories(keys)) {
    this.#keys = keys;
    this.#unused = unused;
    this.surveyor = new V2Surveyor(keys);
  }

  get clusterId(): string | undefined {
    return this.#keys.clusterId;
  }

  get pending(): PendingWork {
    return this.#keys.cleanups;
  }

  queue(lock: string): QueueStore {
    checkLockName(lock);
    const [keys, unused, path] = [this.#keys, this.#unused, `${this.#keys.lockPrefix}/${lock}`];
    return {
      path,
      ticket: (value, options) => new V2Ticket(keys, unused, { path, value, ...options }),
      read: ({ signal } = {}) => readQueue(keys, path, { quorum: true, signal }),
      async evict(entry: V2Entry, options) {
        await remove(keys, entry, options);
        unused.add(path);
      },
    };
  }

  marker(lock: string): MarkerStore {
    checkLockName(lock);
    return new V2Marker(this.#keys, markerKey(this.#keys.lockPrefix, lock));
  }

  async list(): Promise<ReadonlyMap<string, Queue>> {
    return readQueues(this.#keys);
  }
}
