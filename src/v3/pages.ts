import { EtcdClusterIdChanged, EtcdException } from '../errors.ts';
import { entryOf, type Listing, type Stamp, stampOf, type V3Entry } from './answers.ts';
import type { CallOptions, V3Client } from './client.ts';
import { OUT_OF_RANGE } from './errors.ts';
import { decodeRange, type Json } from './messages.ts';
import * as transactions from './transactions.ts';

/** Maximum number of keys in one page. Its answer is decoded in one turn of the event loop. */
const PAGE = 1000;

/** Maximum number of times that a listing begins again because etcd has compacted its revision in the meantime. */
const MOST_TRIES = 3;

interface Page extends Stamp {
  readonly entries: readonly V3Entry[];
  /** Whether more keys follow. */
  readonly more: boolean;
}

/**
 * Reads all keys below the path of a queue or of all queues, at one revision, in the order of the keys. Sends one request for each
 * {@link PAGE} of them, so that neither this process nor etcd is busy with one answer for long. Linearizable.
 */
export async function readInPages(client: V3Client, path: string, options: CallOptions): Promise<Listing> {
  for (let tries = 1; ; tries += 1) {
    try {
      return await listOnce(client, path, options);
    } catch (error) {
      const isCompacted = error instanceof EtcdException && error.errorCode === OUT_OF_RANGE;
      if (!isCompacted || tries === MOST_TRIES) throw error;
    }
  }
}

async function listOnce(client: V3Client, path: string, options: CallOptions): Promise<Listing> {
  const entries: V3Entry[] = [];
  let page = await readPage(client, transactions.pageBelow(`${path}/`, PAGE), options);
  const { clusterId, revision } = page;
  for (;;) {
    for (const entry of page.entries) entries.push(entry);
    const last = entries.at(-1);
    if (!page.more || !last) return { clusterId, revision, entries };
    page = await readPage(client, transactions.pageBelow(`${path}/`, PAGE, { last: last.key, revision }), options);
    if (page.clusterId !== clusterId)
      throw new EtcdClusterIdChanged(
        `cluster ${page.clusterId} answered a part of a listing that cluster ${clusterId} began`,
      );
  }
}

const readPage = (client: V3Client, request: Json, options: CallOptions): Promise<Page> =>
  client.call('hedged', { lane: 'read', ...options }, async (member) => {
    const answer = await member.ask('/kv/range', request);
    return { ...stampOf(answer), entries: decodeRange(answer.fields).map(entryOf), more: answer.fields.flag('more') };
  });
