import { ignore } from '../../cancellation.ts';
import type { StoreEvent } from './history.ts';

/** Maximum number of unsent events of a stream, as in etcd. */
const CAPACITY = 100;

/** The unsent events of a stream. Its size is limited, so that a slow client cannot use up the memory. */
export class EventQueue {
  readonly #events: StoreEvent[] = [];
  #arrived: () => void = ignore;

  /** Adds an event. Returns false if the queue is full: the event is dropped. etcd then sends this client no further event. */
  push(event: StoreEvent): boolean {
    if (this.#events.length === CAPACITY) return false;
    this.#events.push(event);
    this.#arrived();
    return true;
  }

  shift(): StoreEvent | undefined {
    return this.#events.shift();
  }

  /** Resolves when the next event is pushed. Call this only while the queue is empty. */
  arrival(): Promise<void> {
    return new Promise((resolve) => {
      this.#arrived = resolve;
    });
  }
}
