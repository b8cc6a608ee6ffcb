import { ignore } from '../../cancellation.ts';
import type { StoreEvent } from './history.ts';

/** Events etcd keeps for a stream whose client does not take them. */
const CAPACITY = 100;

/** Events of a stream that are not sent yet. A client that is too slow must not make it grow without end. */
export class EventQueue {
  readonly #events: StoreEvent[] = [];
  #arrived: () => void = ignore;

  /** @returns false when the queue is full: the event is dropped. etcd then sends this client no further event. */
  push(event: StoreEvent): boolean {
    if (this.#events.length === CAPACITY) return false;
    this.#events.push(event);
    this.#arrived();
    return true;
  }

  shift(): StoreEvent | undefined {
    return this.#events.shift();
  }

  /** Resolves when an event is pushed to the empty queue. */
  arrival(): Promise<void> {
    return new Promise((resolve) => {
      this.#arrived = resolve;
    });
  }
}
