import { now } from '../../../base/time.ts';
import { EtcdEventIndexCleared, EtcdKeyNotFound } from '../../../errors.ts';
import type { V2Client } from '../../../v2/client.ts';
import type { KeyEvent, Node, WatchOptions } from '../../../v2/keys-api.ts';
import type { V3Client } from '../../../v3/client.ts';
import { untilVacated, type WaitEnd } from '../../../v3/locks/deletion.ts';
import { type EntryKey, nameOf } from '../target.ts';
import { untilEvent } from '../until-event.ts';
import { clientEvent, clientNode, placeholderIn } from './nodes.ts';
import type { BothQueues } from './queues.ts';

/** Long polls of clients of a bridge to both stores. */
export class BothPolls {
  readonly #v2: V2Client;
  readonly #v3: V3Client;
  readonly #queues: BothQueues;

  constructor(v2: V2Client, v3: V3Client, queues: BothQueues) {
    this.#v2 = v2;
    this.#v3 = v3;
    this.#queues = queues;
  }

  /** Waits until the entry is gone, or has been written after the index `options.after`, by default after the first read. */
  entry({ path, rank }: EntryKey, options: WatchOptions): Promise<KeyEvent | undefined> {
    const { signal } = options;
    let { after } = options;
    const key = `${path}/${nameOf(rank)}`;
    const read = async () => {
      try {
        const { node, index } = await this.#v2.get(key, { quorum: true, signal });
        after ??= index;
        const isNew = node.modifiedIndex > after;
        return { index, event: isNew ? this.#event('set', clientNode(node)) : undefined };
      } catch (error) {
        if (!(error instanceof EtcdKeyNotFound)) throw error;
        const index = error.index ?? 0;
        return { index, event: this.#removal(key, Number(rank), index) };
      }
    };
    return untilEvent(read, ({ index }) => this.#changed(key, index, signal), options);
  }

  /** Yields the changes of a queue on v2. */
  async *below(path: string, { timeout: _, ...options }: WatchOptions): AsyncGenerator<KeyEvent> {
    let { after } = options;
    const started = (index: number): void => {
      after ??= index;
      options.started?.(index);
    };
    let first = true;
    while (!options.signal?.aborted) {
      const event = await this.#v2.watch(path, { ...options, ...(first ? { started } : {}), after });
      first = false;
      if (!event) continue;
      after = event.index;
      yield clientEvent(event);
    }
  }

  /** Waits until the queue no longer has the extra entry with this key; see {@link placeholderIn}. */
  placeholder(path: string, key: string, options: WatchOptions): Promise<KeyEvent | undefined> {
    const { signal } = options;
    const read = async () => {
      const settled = await this.#queues.settled(path, signal);
      const { index } = settled.snapshot;
      const event = placeholderIn(path, settled)?.key === key ? undefined : this.#removal(key, index, index);
      return { index, event, obstacle: settled.obstacle, revision: settled.revision };
    };
    return untilEvent(
      read,
      async ({ obstacle, revision }) =>
        obstacle
          ? untilVacated(this.#v3.requests.watches, path, obstacle, { since: revision, ttl: null, signal })
          : 'change',
      options,
    );
  }

  async #changed(key: string, after: number, signal: WatchOptions['signal']): Promise<WaitEnd> {
    try {
      return (await this.#v2.watch(key, { after, signal })) ? 'change' : 'silence';
    } catch (error) {
      if (error instanceof EtcdEventIndexCleared) return 'silence';
      if (signal?.aborted) throw signal.reason;
      return 'failure';
    }
  }

  #removal(key: string, createdIndex: number, index: number): KeyEvent {
    return this.#event('delete', { key, dir: false, createdIndex, modifiedIndex: index, nodes: [] });
  }

  #event(action: string, node: Node): KeyEvent {
    return { clusterId: this.#v3.clusterId, sentAt: now(), action, node, index: node.modifiedIndex };
  }
}
