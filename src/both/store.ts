import { addAbortListener } from '../base/cancellation.ts';
import { show } from '../base/checks.ts';
import { PendingWork } from '../base/pending-work.ts';
import { EtcdClientClosed } from '../errors.ts';
import { sharedIdOf } from '../recipe/entries/entry.ts';
import type {
  Entry,
  LockStore,
  Queue,
  QueueStore,
  ReadOptions,
  StoreCall,
  Ticket,
  TicketOptions,
} from '../recipe/store.ts';
import type { Pair } from './pair.ts';
import { merged } from './queue.ts';
import { BothSurveyor } from './surveyor.ts';
import { BothTicket } from './ticket.ts';

/**
 * The lock queues of a cluster in both of its stores. A lock is held on etcd v2 and on v3 at the same time. So a client of only one
 * API cannot hold it too. See {@link BothTicket}.
 */
export class BothStore implements LockStore {
  readonly pending = new PendingWork(() => new EtcdClientClosed('the client was closed'));
  readonly surveyor: BothSurveyor;
  readonly #stores: Pair<LockStore>;
  /** Maps the key on v2 to the key on v3, for each ticket with an entry in both queues. */
  readonly #keysOnV3 = new Map<string, string>();

  constructor(stores: Pair<LockStore>) {
    this.#stores = stores;
    this.surveyor = new BothSurveyor({ v2: stores.v2.surveyor, v3: stores.v3.surveyor });
    addAbortListener(this.pending.closing, (reason) => {
      stores.v2.pending.closing.abort(reason);
      stores.v3.pending.closing.abort(reason);
    });
  }

  get clusterId(): string | undefined {
    return this.#stores.v2.clusterId;
  }

  queue(lock: string): QueueStore {
    const { v2, v3 } = this.#stores;
    return new BothQueue({ v2: v2.queue(lock), v3: v3.queue(lock) }, this.#keysOnV3);
  }

  /** @throws {TypeError} always: the markers in two stores could not be changed in one step */
  marker(lock: string): never {
    throw new TypeError(`ticks need a client with api "v2" or "v3", got api "both" for the lock ${show(lock)}`);
  }

  async list(): Promise<ReadonlyMap<string, Queue>> {
    const { v2, v3 } = this.#stores;
    const [onV2, onV3] = await Promise.all([v2.list(), v3.list()]);
    const names = new Set([...onV2.keys(), ...onV3.keys()]);
    return new Map([...names].map((name) => [name, merged(onV2.get(name), onV3.get(name))]));
  }

  /** Returns a key on v2 and, if its ticket also has an entry on v3, the key of that entry. */
  keysOf(key: string): readonly string[] {
    const keyOnV3 = this.#keysOnV3.get(key);
    return keyOnV3 === undefined ? [key] : [key, keyOnV3];
  }
}

class BothQueue implements QueueStore {
  readonly path: string;
  readonly #stores: Pair<QueueStore>;
  readonly #keysOnV3: Map<string, string>;

  constructor(stores: Pair<QueueStore>, keysOnV3: Map<string, string>) {
    this.path = stores.v2.path;
    this.#stores = stores;
    this.#keysOnV3 = keysOnV3;
  }

  ticket(value: string, options?: TicketOptions): Ticket {
    return new BothTicket(this.#stores, value, this.#keysOnV3, options);
  }

  async read(options?: ReadOptions): Promise<Queue> {
    const { v2, v3 } = this.#stores;
    const [onV2, onV3] = await Promise.all([v2.read(options), v3.read(options)]);
    return merged(onV2, onV3);
  }

  /** Removes the entry from both queues. */
  async evict(entry: Entry, options: StoreCall): Promise<void> {
    const { v2, v3 } = this.#stores;
    for (const queue of [v3, v2]) {
      const { entries } = await queue.read(options);
      for (const own of entries) if (sharedIdOf(own) === sharedIdOf(entry)) await queue.evict(own, options);
    }
  }
}
