import type { PendingWork } from '../../base/pending-work.ts';
import { markerKey } from '../../recipe/entries/marker-key.ts';
import { checkName } from '../../recipe/option-checks.ts';
import type {
  Entry,
  LockStore,
  MarkerStore,
  Queue,
  QueueStore,
  ReadOptions,
  StoreCall,
  Ticket,
  TicketOptions,
} from '../../recipe/store.ts';
import type { V3Client } from '../client.ts';
import { V3MarkerStore } from './marker.ts';
import { isDirectly, queueOf, queuesAmong, startOf } from './reading.ts';
import { V3Surveyor } from './surveyor.ts';
import { V3Ticket } from './ticket.ts';

/** In bytes: as on etcd v2, so that a name is valid on both. */
const MAX_NAME_LENGTH = 750;

/**
 * Queues of locks on etcd v3, shared with Go's `concurrency.Mutex` and `etcdctl lock`. The entries of the lock `name` are the keys
 * `<lockPrefix>/<name>/<id>`, in the order of their creation.
 */
export class V3LockStore implements LockStore {
  readonly surveyor: V3Surveyor;
  readonly #client: V3Client;

  constructor(client: V3Client) {
    this.#client = client;
    this.surveyor = new V3Surveyor(client);
  }

  get clusterId(): string | undefined {
    return this.#client.clusterId;
  }

  get pending(): PendingWork {
    return this.#client.pending;
  }

  queue(lock: string): QueueStore {
    checkLockName(lock);
    return new V3QueueStore(this.#client, startOf(this.#client.lockPrefix) + lock);
  }

  marker(lock: string): MarkerStore {
    checkLockName(lock);
    return new V3MarkerStore(this.#client, markerKey(this.#client.lockPrefix, lock));
  }

  async list(): Promise<ReadonlyMap<string, Queue>> {
    const { requests, lockPrefix } = this.#client;
    const start = startOf(lockPrefix);
    const { entries: plain } = await requests.readPrefix(start, {});
    const queues = queuesAmong(start, await requests.withTtls(plain, {}));
    return new Map([...queues].map(([name, entries]) => [name, queueOf(entries)]));
  }
}

/** Names are not normalised: other programs choose them, too. */
const checkLockName = (lock: string): void => checkName('lock name', lock, MAX_NAME_LENGTH);

class V3QueueStore implements QueueStore {
  readonly path: string;
  readonly #client: V3Client;

  constructor(client: V3Client, path: string) {
    this.#client = client;
    this.path = path;
  }

  ticket(value: string, options?: TicketOptions): Ticket {
    return new V3Ticket(this.#client, this.path, value, options);
  }

  async read({ signal, ttls }: ReadOptions = {}): Promise<Queue> {
    const { requests } = this.#client;
    const { entries: below } = await requests.read(this.path, { signal });
    const entries = below.filter(({ key }) => isDirectly(this.path, key));
    return queueOf(ttls ? await requests.withTtls(entries, { signal }) : entries);
  }

  /** Also compares the rank: a key that was re-created with the same value stays. */
  async evict({ key, value, rank }: Entry, { signal }: StoreCall): Promise<void> {
    await this.#client.requests.remove(key, { value, rank }, { signal });
  }
}
