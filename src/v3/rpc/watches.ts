import { Scope } from '../../base/cancellation.ts';
import { EtcdConnectionFailed, EtcdException } from '../../errors.ts';
import { OUT_OF_RANGE } from '../gateway/errors.ts';
import type { GatewayCall, GatewayClient } from '../gateway/gateway.ts';
import { encodeBytes, type Json } from '../gateway/messages.ts';
import { below } from './ranges.ts';
import { decodeWatchMessage, type EntryChange, JsonObjects, type WatchMessage } from './watch-stream.ts';

/** Abort reason of a watch that has reported the expected change. */
const OVER = new Error('the watch has shown a change');

export interface DeletionOptions extends GatewayCall {
  /** The watch reports deletions from this revision on. */
  readonly from: bigint;
}

export interface VacateOptions extends DeletionOptions {
  /** The keys to watch. */
  readonly keys: readonly string[];
  /** How many of them must be deleted. */
  readonly count: number;
}

export interface DeletionsOptions extends DeletionOptions {
  /** Called with each message. Returns true to end the watches. */
  readonly until: (said: WatchMessage) => boolean;
}

/** Watches of keys. Each ends with an {@link EtcdConnectionFailed} when the member ends it. */
export class WatchRequests {
  readonly #gateway: GatewayClient;

  constructor(gateway: GatewayClient) {
    this.#gateway = gateway;
  }

  /** Waits until the key is deleted. Also resolves if etcd no longer has all events since `from`. */
  changed(key: string, { from, ...options }: DeletionOptions): Promise<void> {
    const until = ({ isCompacted, events }: WatchMessage): boolean =>
      isCompacted || events.some(({ written }) => !written);
    return this.#watch([deletionsIn({ key: encodeBytes(key) }, from)], until, options);
  }

  /**
   * Waits until `count` of the keys `keys`, all below the path of a queue, are deleted. Also resolves if etcd no longer has all events
   * since `from`.
   */
  vacated(path: string, { keys, count, from, ...options }: VacateOptions): Promise<void> {
    const left = new Set(keys);
    const enough = left.size - count;
    const until = ({ isCompacted, events }: WatchMessage): boolean => {
      for (const { key, written } of events) if (!written) left.delete(key);
      return isCompacted || left.size <= enough;
    };
    return this.#watch([deletionsIn(below(`${path}/`), from)], until, options);
  }

  /** Watches the deletions of keys, each by a watch of its own in one stream, until `until` returns true. */
  deletions(keys: readonly string[], { from, until, ...options }: DeletionsOptions): Promise<void> {
    const messages = keys.map((key) => deletionsIn({ key: encodeBytes(key) }, from));
    return this.#watch(messages, until, options);
  }

  /**
   * Waits for the next changes of keys with a prefix. Resolves to undefined if etcd no longer has all events since `from`.
   * @param from the first revision whose changes are reported
   */
  async events(prefix: string, from: bigint, options: GatewayCall): Promise<readonly EntryChange[] | undefined> {
    let said: WatchMessage | undefined;
    const until = (message: WatchMessage): boolean => {
      if (!message.isCompacted && message.events.length === 0) return false;
      said = message;
      return true;
    };
    const request = { ...below(prefix), start_revision: String(from), prev_kv: true };
    await this.#watch([{ create_request: request }], until, options);
    return said?.isCompacted ? undefined : said?.events;
  }

  /** Resolves to whether etcd still has the events since a revision. The revision must not be in the future. */
  knowsSince(path: string, revision: bigint, options: GatewayCall): Promise<boolean> {
    return this.#gateway.call('hedged', { lane: 'read', ...options }, async (member) => {
      try {
        await member.ask('/kv/range', { key: encodeBytes(path), revision: String(revision) });
        return true;
      } catch (error) {
        if (error instanceof EtcdException && error.errorCode === OUT_OF_RANGE) return false;
        throw error;
      }
    });
  }

  /**
   * Watches keys, in one stream, until `until` returns true.
   * @param messages the requests that begin the watches
   */
  #watch(messages: readonly Json[], until: DeletionsOptions['until'], options: GatewayCall): Promise<void> {
    return this.#gateway.call('poll', { lane: 'poll', ...options }, async (member) => {
      const over = new Scope();
      const objects = new JsonObjects((text) => {
        if (!over.aborted && until(decodeWatchMessage(text))) over.abort(OVER);
      });
      try {
        await member.stream('/watch', messages, (chunk) => objects.add(chunk), over);
      } catch (error) {
        if (!over.aborted) throw error;
      }
      if (!over.aborted) throw new EtcdConnectionFailed('the member ended the watch');
    });
  }
}

/** Returns the request that begins a watch for deletions of a key, or of a range of keys, at revision `from` or later. */
const deletionsIn = (keys: Json, from: bigint): Json => ({
  create_request: { ...keys, start_revision: String(from), filters: ['NOPUT'] },
});
