import { etcdError } from '../../v2/error-codes.ts';
import type { Node } from '../../v2/keys-api.ts';

/** A change of a key. */
export interface StoreEvent {
  readonly action: string;
  readonly node: Node;
  readonly prevNode?: Node;
  /** True for a refresh: the event has an index like any other, but watchers are not notified. */
  readonly silent: boolean;
}

/** Number of events that etcd keeps for the whole store. */
const CAPACITY = 1000;

/** The latest events by index, for watches that start in the past. */
export class History {
  readonly #events: StoreEvent[] = [];
  #last: number;

  /** @param last the index before the first event */
  constructor(last: number) {
    this.#last = last;
  }

  add(event: StoreEvent): void {
    this.#last = event.node.modifiedIndex;
    this.#events[this.#last % CAPACITY] = event;
  }

  /**
   * Returns the first event with an index of at least `since` that a watch on the key would have reported.
   * @throws {EtcdEventIndexCleared} if the history no longer contains that index
   */
  find(key: string, recursive: boolean, since: number): StoreEvent | undefined {
    const first = Math.max(1, this.#last - CAPACITY + 1);
    if (since < first) throw etcdError(401, `the requested history has been cleared [${first}/${since}]`, this.#last);
    for (let index = since; index <= this.#last; index += 1) {
      const event = this.#events[index % CAPACITY];
      if (event && !event.silent && isAbout(event, key, recursive)) return event;
    }
    return undefined;
  }
}

/** Whether a watch on `key` reports this past event. A recursive watch reports past events of hidden keys, but no new ones. */
function isAbout({ action, node, prevNode }: StoreEvent, key: string, recursive: boolean): boolean {
  if (node.key === key) return true;
  if (recursive && node.key.startsWith(key === '/' ? '/' : `${key}/`)) return true;
  // No slash after the prefix: a watch on /ab also reports the removal of the directory /a. That is wrong, but etcd does it.
  return (action === 'delete' || action === 'expire') && prevNode?.dir === true && key.startsWith(prevNode.key);
}
