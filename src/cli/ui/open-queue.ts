import type { HistoryEvent, LiveLock } from '../live/model.ts';
import { type LiveStore, type QueueBasis, queueOf } from './encode.ts';
import { frame } from './frame.ts';

/** Milliseconds between two messages if only TTLs have changed. A renewal of one of many entries is such a change. */
const TTLS_EVERY = 1000;

/** What the queue of a lock was made from: as long as these are the same, so is the queue. */
type Sources = readonly (LiveLock | HistoryEvent | string | undefined)[];

/** The queue of one lock as JSON, encoded once for all who look at it. */
export class OpenQueue {
  readonly #stores: readonly LiveStore[];
  readonly #name: string;
  readonly #basis: QueueBasis;
  #sources: Sources = [];
  /** The queue without its TTLs. */
  #structure = '';
  #sentAt = 0;

  constructor(stores: readonly LiveStore[], name: string, basis: QueueBasis) {
    this.#stores = stores;
    this.#name = name;
    this.#basis = basis;
  }

  /** Returns the queue as an event with a `ShownQueue`. */
  all(): Buffer {
    return frame('lock', JSON.stringify(queueOf(this.#stores, this.#name, this.#basis)));
  }

  /**
   * Returns the queue if it has changed since the last call; otherwise undefined.
   * @param again called if TTLs have changed, but cannot be sent yet, with the milliseconds until then
   */
  change(again: (after: number) => void): Buffer | undefined {
    const sources = this.#currentSources();
    if (sources.every((source, at) => source === this.#sources[at])) return undefined;
    const queue = queueOf(this.#stores, this.#name, this.#basis);
    const { queues, history, stores } = queue;
    const outages = stores.map(({ outage }) => outage);
    const structure = JSON.stringify({ queues, history, outages }, (key, value) => (key === 'ttl' ? undefined : value));
    const wait = this.#sentAt + TTLS_EVERY - Date.now();
    if (structure === this.#structure && wait > 0) {
      again(wait);
      return undefined;
    }
    this.#sources = sources;
    this.#structure = structure;
    this.#sentAt = Date.now();
    return frame('lock', JSON.stringify(queue));
  }

  #currentSources(): Sources {
    return this.#stores.flatMap(({ model }) => [
      model.locks.find(({ name }) => name === this.#name),
      model.history.findLast(({ entry }) => entry.name === this.#name),
      JSON.stringify(model.outage),
    ]);
  }
}
