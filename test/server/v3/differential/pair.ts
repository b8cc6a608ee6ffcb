import { EmbeddedEtcd, type EmbeddedEtcdOptions } from '../../../../src/server/index.ts';
import { startEtcd } from '../../../support/etcd.ts';
import { until } from '../../../support/until.ts';
import { Client } from './client.ts';

export type Version = NonNullable<EmbeddedEtcdOptions['version']>;

/** The two servers to compare. They have no other clients, so their revisions stay the same. */
export interface Pair {
  readonly version: Version;
  readonly real: Client;
  readonly embedded: Client;
  close(): Promise<void>;
}

export interface PairOptions {
  readonly version: Version;
  /** The server to start. Default: the etcd on the PATH. */
  readonly program?: string | undefined;
  /** Further options of the server. */
  readonly args?: readonly string[];
}

interface Versions {
  readonly etcdcluster: string;
  /** Only etcd 3.6 tells it. */
  readonly storage?: string;
}

export async function openPair({ version, program, args = [] }: PairOptions): Promise<Pair> {
  const [etcd, server] = await Promise.all([startEtcd({ program, args }), EmbeddedEtcd.start({ version })]);
  const [real, embedded] = [new Client(etcd.url), new Client(server.url)];
  // A new etcd 3.6 has the storage of 3.5 for some seconds.
  await until(
    async () => JSON.parse((await real.ask({ method: 'GET', path: '/version' })).body) as Versions,
    ({ etcdcluster, storage = etcdcluster }) => storage === etcdcluster,
  );
  const close = async () => {
    await Promise.all([real.close(), embedded.close()]);
    await Promise.all([etcd.stop(), server.stop()]);
  };
  return { version, real, embedded, close };
}

/** Brings both servers to the same revision, without keys, leases and history. Returns the revision. */
export async function level({ real, embedded }: Pair): Promise<number> {
  await Promise.all([empty(real), empty(embedded)]);
  const revisions = { real: await write(real), embedded: await write(embedded) };
  while (revisions.real < revisions.embedded) revisions.real = await write(real);
  while (revisions.embedded < revisions.real) revisions.embedded = await write(embedded);
  const [revision] = await Promise.all([real, embedded].map(forget));
  return revision ?? 0;
}

const ALL = { key: 'AA==', range_end: 'AA==' };

async function empty(server: Client): Promise<void> {
  const { leases = [] } = (await server.post('/v3/lease/leases', {})) as { leases?: readonly object[] };
  for (const lease of leases) await server.post('/v3/lease/revoke', lease);
  await server.post('/v3/kv/deleterange', ALL);
}

const write = async (server: Client): Promise<number> => revisionOf(await server.post('/v3/kv/put', { key: 'AA==' }));

async function forget(server: Client): Promise<number> {
  const revision = revisionOf(await server.post('/v3/kv/deleterange', ALL));
  await server.post('/v3/kv/compaction', { revision });
  return revision;
}

const revisionOf = ({ header }: Record<string, unknown>): number =>
  Number((header as { readonly revision: string }).revision);
