import type { PendingWork } from '../../base/pending-work.ts';
import { markerKey } from '../../recipe/entries/marker-key.ts';
import type {
  LockStore,
  MarkerStore,
  Queue,
  QueueStore,
  StoreCall,
  Ticket,
  TicketOptions,
} from '../../recipe/store.ts';
import type { KeysApi } from '../keys-api.ts';
import { checkLockName } from '../paths.ts';
import { remove } from './entry-requests.ts';
import { V2Marker } from './marker.ts';
import { readQueue, type V2Entry, type V2Queue } from './reading.ts';
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
    return new V2QueueStore(this.#keys, this.#unused, `${this.#keys.lockPrefix}/${lock}`);
  }

  marker(lock: string): MarkerStore {
    checkLockName(lock);
    return new V2Marker(this.#keys, markerKey(this.#keys.lockPrefix, lock));
  }

  async list(): Promise<ReadonlyMap<string, Queue>> {
    return readQueues(this.#keys);
  }
}

class V2QueueStore implements QueueStore {
  readonly path: string;
  readonly #keys: KeysApi;
  readonly #unused: UnusedDirectories;

  constructor(keys: KeysApi, unused: UnusedDirectories, path: string) {
    this.#keys = keys;
    this.#unused = unused;
    this.path = path;
  }

  ticket(value: string, options?: TicketOptions): Ticket {
    return new V2Ticket(this.#keys, this.#unused, { path: this.path, value, ...options });
  }

  read({ signal }: StoreCall = {}): Promise<V2Queue> {
    return readQueue(this.#keys, this.path, { quorum: true, signal });
  }

  async evict(entry: V2Entry, options: StoreCall): Promise<void> {
    await remove(this.#keys, entry, options);
    this.#unused.add(this.path);
  }
}
