import { EtcdClusterIdChanged, EtcdException } from '../../errors.ts';
import { OUT_OF_RANGE } from '../gateway/errors.ts';
import type { GatewayAnswer, GatewayCall, GatewayClient } from '../gateway/gateway.ts';
import type { Header, Json } from '../gateway/messages.ts';
import { decodeRange, type V3Entry } from './entry.ts';
import { isEntryOf } from './keys.ts';
import { timeToLive } from './leases.ts';
import { createdAt, firstBelow, oldestBelow, pageBelow } from './ranges.ts';

/** Maximum number of keys in one page. Its answer is decoded in one turn of the event loop. */
const PAGE = 1000;

/** Maximum number of times that a listing begins again because etcd has compacted its revision in the meantime. */
const MOST_TRIES = 3;

/** Keys that begin with a prefix, in the order of the answer. */
export interface KeyListing extends Header {
  readonly entries: readonly V3Entry[];
}

interface KeyPage extends KeyListing {
  /** Whether more keys follow. */
  readonly more: boolean;
}

export interface FirstOptions extends GatewayCall {
  /** Maximum number of keys to read: those that were created first. */
  readonly among: number;
  /** Whether to skip keys of other locks, whose names begin with this lock's name and a "/". */
  readonly onlyEntries: boolean;
}

/** Reads of all keys below a prefix. Linearizable. */
export class ListingRequests {
  readonly #gateway: GatewayClient;

  constructor(gateway: GatewayClient) {
    this.#gateway = gateway;
  }

  /** Reads all keys below the path of a queue, also those of locks whose names begin with this lock's and a "/". */
  read(path: string, options: GatewayCall): Promise<KeyListing> {
    return this.readPrefix(`${path}/`, options);
  }

  /** Reads all keys that begin with a prefix, in the order of their creation. */
  readPrefix(prefix: string, options: GatewayCall): Promise<KeyListing> {
    return this.#list(oldestBelow(prefix), listingIn, options);
  }

  /** Reads the keys below a path that were created at a revision. */
  createdAt(path: string, revision: bigint, options: GatewayCall): Promise<KeyListing> {
    return this.#list(createdAt(`${path}/`, revision), listingIn, options);
  }

  /** Reads the first key below the path of a queue, with its remaining TTL. */
  first(path: string, { among, onlyEntries, ...options }: FirstOptions): Promise<V3Entry | undefined> {
    return this.#gateway.call('safe', { lane: 'read', ...options }, async (member) => {
      const { fields } = await member.ask('/kv/range', firstBelow(`${path}/`, among));
      const first = decodeRange(fields).find(({ key }) => !onlyEntries || isEntryOf(path, key));
      return first && { ...first, ttl: await timeToLive(member, first.lease) };
    });
  }

  /**
   * Reads all keys below the path of a queue or of all queues, at one revision, in the order of the keys. Sends one request for each
   * {@link PAGE} of them, so that neither this process nor etcd is busy with one answer for long.
   */
  async readPages(path: string, options: GatewayCall): Promise<KeyListing> {
    for (let tries = 1; ; tries += 1) {
      try {
        return await this.#readPagesOnce(path, options);
      } catch (error) {
        const isCompacted = error instanceof EtcdException && error.errorCode === OUT_OF_RANGE;
        if (!isCompacted || tries === MOST_TRIES) throw error;
      }
    }
  }

  async #readPagesOnce(path: string, options: GatewayCall): Promise<KeyListing> {
    const entries: V3Entry[] = [];
    let page = await this.#list(pageBelow(`${path}/`, PAGE), pageIn, options);
    const { clusterId, revision, raftTerm } = page;
    for (;;) {
      for (const entry of page.entries) entries.push(entry);
      const last = entries.at(-1);
      if (!page.more || !last) return { clusterId, revision, raftTerm, entries };
      page = await this.#list(pageBelow(`${path}/`, PAGE, { last: last.key, revision }), pageIn, options);
      if (page.clusterId !== clusterId)
        throw new EtcdClusterIdChanged(
          `cluster ${page.clusterId} answered a part of a listing that cluster ${clusterId} began`,
        );
    }
  }

  #list<L>(range: Json, decode: (answer: GatewayAnswer) => L, options: GatewayCall): Promise<L> {
    return this.#gateway.call('hedged', { lane: 'read', ...options }, async (member) =>
      decode(await member.ask('/kv/range', range)),
    );
  }
}

const listingIn = (answer: GatewayAnswer): KeyListing => ({ ...answer.header, entries: decodeRange(answer.fields) });

const pageIn = (answer: GatewayAnswer): KeyPage => ({ ...listingIn(answer), more: answer.fields.flag('more') });
