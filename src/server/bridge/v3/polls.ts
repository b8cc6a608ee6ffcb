import { Scope } from '../../../base/cancellation.ts';
import { Deadline, now } from '../../../base/time.ts';
import { etcdError } from '../../../v2/error-codes.ts';
import type { KeyEvent, Node, WatchOptions } from '../../../v2/keys-api.ts';
import type { V3Client } from '../../../v3/client.ts';
import { untilDeleted } from '../../../v3/locks/deletion.ts';
import type { EntryChange } from '../../../v3/rpc/watch-stream.ts';
import { type EntryKey, nameOf } from '../target.ts';
import { untilEvent } from '../until-event.ts';
import type { BridgedEntries } from './entries.ts';
import { nodeOf, removedNode } from './tree.ts';

/** Seconds of silence of a member after which a poll starts its watch again. */
const SILENCE = 20;
const SILENT = new Error('no event in time');

/** The long polls of etcd v2, as watches of etcd v3. */
export class BridgedPolls {
  readonly #client: V3Client;
  readonly #entries: BridgedEntries;

  constructor(client: V3Client, entries: BridgedEntries) {
    this.#client = client;
    this.#entries = entries;
  }

  /**
   * Waits until the entry is gone. Notices a write after the index `options.after` only at its next read. A removed entry is never
   * re-created.
   */
  entry(at: EntryKey, options: WatchOptions): Promise<KeyEvent | undefined> {
    const { after, signal } = options;
    const read = async () => {
      const { own, revision } = await this.#entries.read(at, { signal });
      const gone = { key: `${at.path}/${nameOf(at.rank)}`, createdIndex: Number(at.rank) };
      let event: KeyEvent | undefined;
      if (!own) event = this.#event('delete', removedNode(gone, revision));
      else if (after !== undefined && own.modified > BigInt(after)) event = this.#event('set', nodeOf(at.path, own));
      return { index: Number(revision), event, own, revision };
    };
    return untilEvent(
      read,
      async ({ own, revision }) =>
        own ? untilDeleted(this.#client.requests.watches, own, { since: revision, ttl: null, signal }) : 'change',
      options,
    );
  }

  /**
   * Yields the changes of entries below a path. Ends if etcd has compacted a revision after the last of them.
   * @param onlyFirst whether only the first change is used. If several changes have the same index, ends without an event: the
   * client would continue after that index and miss the others, so it must read the entries again
   */
  async *below(path: string, options: WatchOptions, onlyFirst: boolean): AsyncGenerator<KeyEvent> {
    const { after, recursive, signal, started } = options;
    const { requests } = this.#client;
    // A key that a user who may read the entries may read, too.
    const first = `${path}/`;
    const { revision } = await requests.entries.get(first, { signal });
    let from = after === undefined ? revision + 1n : BigInt(after) + 1n;
    if (from <= revision && !(await requests.watches.knowsSince(first, from, { signal })))
      throw etcdError(401, `the requested history has been cleared [${from}]`, Number(revision));
    started?.(Number(revision));
    for (;;) {
      const events = await this.#events(path, from, signal);
      const [first, second] = events ?? [];
      if (!events || (onlyFirst && second && second.revision === first?.revision)) return;
      for (const event of events) {
        const change = this.#change(event);
        if (change && recursive) yield change;
        from = event.revision + 1n;
      }
    }
  }

  /**
   * Waits for the next events. Resolves to an empty list after a long silence of the member, and to undefined if the events were
   * compacted.
   */
  async #events(
    path: string,
    from: bigint,
    signal: WatchOptions['signal'],
  ): Promise<readonly EntryChange[] | undefined> {
    const over = new Scope(signal).abortAt(Deadline.after(SILENCE), () => SILENT);
    try {
      return await this.#client.requests.watches.events(`${path}/`, from, { signal: over });
    } catch (error) {
      if (error !== SILENT) throw error;
      return [];
    } finally {
      over.dispose();
    }
  }

  #change({ key, revision, written, previous }: EntryChange): KeyEvent | undefined {
    const path = key.slice(0, key.lastIndexOf('/'));
    const entry = written ?? previous;
    if (!entry) return undefined;
    const node = nodeOf(path, entry);
    if (!written) return this.#event('delete', removedNode(node, revision));
    return this.#event(written.rank === revision ? 'create' : 'set', node);
  }

  #event(action: string, node: Node): KeyEvent {
    return { clusterId: this.#client.clusterId, sentAt: now(), action, node, index: node.modifiedIndex };
  }
}
