import { etcdError } from '../../errors.ts';
import type { Node } from '../../v2/keys-api.ts';

/** Something that happened to a key. */
export interface StoreEvent {
  readonly action: string;
  readonly node: Node;
  readonly prevNode?: Node;
  /** A refresh: it has an index like any other event, but nobody is told of it. */
  readonly silent: boolean;
}

/** etcd keeps that many, of the whole store. */
const CAPACITY = 1000;

/** The latest events by index, for waits that begin in the past. */
export class History {
  readonly #events: StoreEvent[] = [];
  #last: number;

  /** @param last index before the first event */
  constructor(last: number) {
    this.#last = last;
  }

  add(event: StoreEvent): void {
    this.#last = event.node.modifiedIndex;
    this.#events[this.#last % CAPACITY] = event;
  }

  /**
   * The first event at or after an index that a watch on the key would have seen.
   * @throws {EtcdEventIndexCleared} when the history does not reach back that far
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

/** As etcd looks for it here: unlike a wait for what is to come, it does not mind hidden keys. */
function isAbout({ action, node, prevNode }: StoreEvent, key: string, recursive: boolean): boolean {
  if (node.key === key) return true;
  if (recursive && node.key.startsWith(key === '/' ? '/' : `${key}/`)) return true;
  // Without a slash: the removal of /a is told to who watched /ab. Spurious, but that is what etcd answers.
  return (action === 'delete' || action === 'expire') && prevNode?.dir === true && key.startsWith(prevNode.key);
}
