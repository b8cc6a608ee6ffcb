import type { PendingWork } from '../../base/pending-work.ts';
import { markerKey } from '../../recipe/entries/marker-key.ts';
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
import { isEntryOf, keyPrefixOf } from '../rpc/keys.ts';
import { V3MarkerStore } from './marker.ts';
import { checkLockName, queueOf, queuePath, queuesAmong } from './reading.ts';
import type { Session } from './session.ts';
import { V3Surveyor } from './surveyor.ts';
import { V3Ticket } from './ticket.ts';

/**
 * Queues of locks on etcd v3, shared with Go's `concurrency.Mutex` and `etcdctl lock`. The entries of the lock `name` are the keys
 * `<lockPrefix>/<name>/<id>`, in the order of their creation.
 */
export class V3LockStore implements LockStore {
  readonly surveyor: V3Surveyor;
  readonly #session: Session;
  readonly #lockPrefix: string;

  constructor(session: Session, lockPrefix: string) {
    this.#session = session;
    this.#lockPrefix = lockPrefix;
    this.surveyor = new V3Surveyor(session.requests, lockPrefix);
  }

  get clusterId(): string | undefined {
    return this.#session.clusterId;
  }

  get pending(): PendingWork {
    return this.#session.pending;
  }

  queue(lock: string): QueueStore {
    return new V3QueueStore(this.#session, queuePath(this.#lockPrefix, lock));
  }

  marker(lock: string): MarkerStore {
    checkLockName(this.#lockPrefix, lock);
    return new V3MarkerStore(this.#session.requests, markerKey(this.#lockPrefix, lock));
  }

  async list(): Promise<ReadonlyMap<string, Queue>> {
    const { listings, leases } = this.#session.requests;
    const start = keyPrefixOf(this.#lockPrefix);
    const { entries: plain } = await listings.readPrefix(start, {});
    const queues = queuesAmong(start, await leases.withTtls(plain, {}));
    return new Map([...queues].map(([name, entries]) => [name, queueOf(entries)]));
  }
}

class V3QueueStore implements QueueStore {
  readonly path: string;
  readonly #session: Session;

  constructor(session: Session, path: string) {
    this.#session = session;
    this.path = path;
  }

  ticket(value: string, options?: TicketOptions): Ticket {
    return new V3Ticket(this.#session, this.path, value, options);
  }

  async read({ signal, ttls }: ReadOptions = {}): Promise<Queue> {
    const { listings, leases } = this.#session.requests;
    const { entries: below } = await listings.read(this.path, { signal });
    const entries = below.filter(({ key }) => isEntryOf(this.path, key));
    return queueOf(ttls ? await leases.withTtls(entries, { signal }) : entries);
  }

  /** Also compares the rank: a key that was re-created with the same value stays. */
  async evict({ key, value, rank }: Entry, { signal }: StoreCall): Promise<void> {
    await this.#session.requests.entries.remove(key, { value, rank }, { signal });
  }
}
