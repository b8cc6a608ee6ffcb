// Listings of very many entries, and of entries whose names only other clients can have.
import { expect, inject, onTestFinished, test } from 'vitest';
import { EtcdRootReadOnly } from '../../../src/errors.ts';
import { clientTree } from '../../../src/server/bridge/both/nodes.ts';
import { directoryOf } from '../../../src/server/bridge/v3/tree.ts';
import type { Node } from '../../../src/v2/keys-api.ts';
import * as wire from '../../../src/v2/wire.ts';
import type { V3Entry } from '../../../src/v3/rpc/entry.ts';
import { startEtcd } from '../../support/etcd.ts';
import { base64, gateway } from '../../support/gateway.ts';
import { freshName, raw, rejection, useProxy } from '../../support/locks.ts';
import type { ProxiedRequest } from '../../support/proxy.ts';
import { turnsDuring } from '../../support/turns.ts';
import { useBridge, useKeys } from './use-bridge.ts';

const TREE = { lockPrefix: '/_locks', recursive: true, index: 9 };

/** Entries as etcd has them, in the order of their keys: each in the directory of its lock. */
const entriesOf = (count: number, lock: (i: number) => string): V3Entry[] =>
  Array.from({ length: count }, (_, i) => ({
    key: `/_locks/${lock(i)}/${i}`,
    value: 'v',
    rank: BigInt(count - i),
    ttl: undefined,
    lease: undefined,
    modified: 1n,
  }));

// Once an array was copied for each entry: these would take a minute each.
test.each([
  ['of one directory', () => 'jobs/one'],
  ['of a directory each', (i: number) => `jobs/${i}`],
])('a tree of 80,000 entries %s is built in the order of creation', async (_, lock) => {
  const count = 80_000;
  const { nodes } = await directoryOf('/_locks', entriesOf(count, lock), TREE);
  const locks = nodes[0]?.nodes ?? [];
  expect(locks.flatMap(({ nodes: files }) => files)).toHaveLength(count);
  expect(locks[0]?.nodes[0]?.createdIndex).toBe(locks.length === 1 ? 1 : count);
});

test('other work continues while a tree is built, translated and encoded', async () => {
  const entries = entriesOf(20_000, (i) => `${i % 10}`);
  let node: Node | undefined;
  const building = await turnsDuring(async () => {
    node = await directoryOf('/_locks', entries, TREE);
  });
  const top = node as Node;
  const translating = await turnsDuring(() => clientTree(top, '/_locks'));
  const encoding = await turnsDuring(() =>
    wire.encodeSnapshot({ node: top, index: 9, clusterId: undefined, sentAt: 0 }),
  );
  for (const turns of [building, translating, encoding]) expect(turns).toBeGreaterThanOrEqual(40);
});

test('of several long listings, one continues at each turn', async () => {
  const entries = entriesOf(5000, (i) => `${i % 10}`);
  const turns = await turnsDuring(() =>
    Promise.all(Array.from({ length: 10 }, () => directoryOf('/_locks', entries, TREE))),
  );
  expect(turns).toBeGreaterThanOrEqual(100);
});

test('a listing whose client has hung up ends', async () => {
  const [entries, gone] = [entriesOf(5000, () => 'one'), new Error('hung up')];
  const hangUp = new AbortController();
  const building = rejection(directoryOf('/_locks', entries, { ...TREE, signal: hangUp.signal }));
  hangUp.abort(gone);
  expect(await building).toBe(gone);
});

/** A bridge with a lock prefix of its own, and a function that makes entries there as other clients of etcd v3 do. */
async function setUp(etcd = inject('etcd')) {
  const lockPrefix = `/${freshName()}`;
  const proxy = await useProxy(etcd);
  const { url } = await useBridge({ endpoints: proxy.url, lockPrefix });
  onTestFinished(async () => {
    await gateway('/kv/deleterange', { key: base64(`${lockPrefix}/`), range_end: base64(`${lockPrefix}0`) }, etcd);
  });
  return {
    lockPrefix,
    proxy,
    url,
    async put(names: readonly string[]): Promise<void> {
      for (let from = 0; from < names.length; from += 128) {
        const success = names
          .slice(from, from + 128)
          .map((name) => ({ request_put: { key: base64(`${lockPrefix}/${name}`), value: base64('v') } }));
        await gateway('/kv/txn', { success }, etcd);
      }
    },
    /** The keys of the entries that a recursive listing shows. */
    async listed(): Promise<string[]> {
      const { status, body } = await raw('GET', `${lockPrefix}?recursive=true`, undefined, url);
      expect(status).toBe(200);
      return filesIn(body.node);
    },
  };
}

const filesIn = ({ key, dir, nodes = [] }: RawNode): string[] => (dir ? nodes.flatMap(filesIn) : [key]);

interface RawNode {
  readonly key: string;
  readonly dir?: boolean;
  readonly nodes?: readonly RawNode[];
}

const isRange = ({ path }: ProxiedRequest): boolean => path.endsWith('/kv/range');

test('a long listing is read from etcd in pages, all at one revision', async () => {
  const etcd = await startEtcd();
  onTestFinished(() => etcd.stop());
  const { lockPrefix, proxy, put, listed } = await setUp(etcd.url);
  const names = Array.from({ length: 2500 }, (_, i) => `lock/${String(i).padStart(4, '0')}`);
  await put(names);
  const before = proxy.requests.filter(isRange).length;
  let compacted: Promise<unknown> | undefined;
  proxy.intercept((request) => {
    if (!isRange(request) || proxy.requests.filter(isRange).length !== before + 2 || compacted) return undefined;
    // Before the second page, an entry is removed, and the revision of the first page is compacted.
    compacted = removeAndCompact(etcd.url, `${lockPrefix}/${names.at(-1)}`);
    return { hold: compacted };
  });
  expect(await listed()).toHaveLength(2499);
  // Two pages of the first try, and three of the second.
  expect(proxy.requests.filter(isRange)).toHaveLength(before + 5);
  for (const { body } of proxy.requests.filter(isRange).slice(before))
    expect(JSON.parse(body)).toMatchObject({ limit: '1000' });
});

async function removeAndCompact(etcd: string, key: string): Promise<void> {
  const { header } = (await gateway('/kv/deleterange', { key: base64(key) }, etcd)) as unknown as {
    header: { revision: string };
  };
  await gateway('/kv/compaction', { revision: header.revision }, etcd);
}

test('an entry that is removed while a listing is read is shown, as at the revision of the listing', async () => {
  const { lockPrefix, proxy, put, listed } = await setUp();
  const names = Array.from({ length: 1500 }, (_, i) => `lock/${String(i).padStart(4, '0')}`);
  await put(names);
  let pages = 0;
  proxy.intercept((request) => {
    if (!isRange(request)) return undefined;
    pages += 1;
    return pages === 2
      ? { hold: gateway('/kv/deleterange', { key: base64(`${lockPrefix}/${names.at(-1)}`) }) }
      : undefined;
  });
  expect(await listed()).toHaveLength(1500);
  expect(pages).toBe(2);
});

test('entries of locks with names that a bridge refuses are not in its listings, and do no harm', async () => {
  const { put, listed, url, lockPrefix } = await setUp();
  // Names of other clients of etcd v3: 1,900 levels, too long, an empty part.
  await put([`${'d/'.repeat(1900)}1`, `${'x'.repeat(751)}/1`, 'a//b/1', `${'y'.repeat(750)}/1`, 'plain/1']);
  const keys = await listed();
  expect(keys.map((key) => key.slice(lockPrefix.length + 1, -21)).sort()).toEqual(['plain', 'y'.repeat(750)]);
  const { body } = await raw('GET', `${lockPrefix}/d?recursive=true`, undefined, url);
  expect(filesIn(body.node)).toEqual([]);
});

test.each(['v3', 'both'] as const)('a name longer than 750 bytes is refused by a bridge to %s', async (api) => {
  const keys = useKeys(await useBridge({ api }));
  const queue = `/_locks/${'d/'.repeat(375)}x`;
  const entry = `${queue}/00000000000000000007`;
  for (const call of [
    () => keys.get(queue, { recursive: true }),
    () => keys.createInOrder(queue, 'v', { ttl: 60 }),
    () => keys.watch(queue, { recursive: true }),
    () => keys.get(entry),
    () => keys.set(entry, 'v', { ttl: 60 }),
    () => keys.delete(entry),
    () => keys.watch(entry),
  ]) {
    const error = await rejection(call());
    expect(error, String(call)).toBeInstanceOf(EtcdRootReadOnly);
    expect(error).toHaveProperty('message', expect.stringContaining('lock name must have at most 750 bytes, got 751'));
  }
  expect((await keys.get(queue.slice(0, -1).replace(/\/$/, ''), { recursive: true })).node.nodes).toEqual([]);
});
