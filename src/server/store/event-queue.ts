import { ignore } from '../../base/cancellation.ts';
import { type Budget, Share } from '../budget.ts';
import type { StoreEvent } from './history.ts';

/** Maximum number of unsent events of a stream, as in etcd. */
const CAPACITY = 100;

/** The unsent events of a stream. Its size is limited, so that a slow client cannot use up the memory. */
export class EventQueue {
  readonly #events: StoreEvent[] = [];
  readonly #share: Share;
  #arrived: () => void = ignore;

  constructor(budget: Budget) {
    this.#share = new Share(budget);
  }

  /** Adds an event. Returns false if the queue is full: the event is dropped. etcd then sends this client no further event. */
  push(event: StoreEvent): boolean {
    if (this.#events.length === CAPACITY || !this.#share.take(sizeOf(event))) return false;
    this.#events.push(event);
    this.#arrived();
    return true;
  }

  shift(): StoreEvent | undefined {
    const event = this.#events.shift();
    if (event) this.#share.give(sizeOf(event));
    return event;
  }

  /** Returns the memory of the events. */
  end(): void {
    this.#share.end();
  }

  /** Resolves when the next event is pushed. Call this only while the queue is empty. */
  arrival(): Promise<void> {
    return new Promise((resolve) => {
      this.#arrived = resolve;
    });
  }
}

/** Memory of an event that no longer is in the history. */
const sizeOf = ({ node, prevNode }: StoreEvent): number =>
  1024 + node.key.length + (node.value?.length ?? 0) + (prevNode?.value?.length ?? 0);
