import { inject, onTestFinished } from 'vitest';
import { EtcdClient, type EtcdClientOptions } from '../../src/client.ts';
import { EtcdKeysLeft } from '../../src/errors.ts';
import { entriesBelow } from './gateway.ts';
import { entriesIn } from './locks.ts';
import { until } from './until.ts';

/** Returns a client of both APIs, unless told otherwise; the end of the test closes it. */
export function useEtcdClient(options: EtcdClientOptions = {}): EtcdClient {
  const client = new EtcdClient({ endpoints: inject('etcd'), api: 'both', ...options });
  onTestFinished(() =>
    client.close({ timeout: 1 }).catch((error) => {
      if (!(error instanceof EtcdKeysLeft)) throw error;
    }),
  );
  return client;
}

/** The keys of a lock in the two stores. */
export async function keysOf(name: string): Promise<{ v2: string[]; v3: string[] }> {
  const [v2, v3] = [await entriesIn(`/_locks/${name}`), await entriesBelow(`/_locks/${name}/`)];
  return { v2: v2.map(({ key }) => key), v3: v3.map(({ key }) => key) };
}

/** The TTLs of all entries of a lock, in both stores. */
export async function ttlsOf(name: string): Promise<(number | undefined)[]> {
  const entries = [...(await entriesIn(`/_locks/${name}`)), ...(await entriesBelow(`/_locks/${name}/`))];
  return entries.map(({ ttl }) => ttl);
}

/** Waits until the lock has this many entries in each store. */
export const untilKeys = (name: string, v2: number, v3: number) =>
  until(
    () => keysOf(name),
    (keys) => keys.v2.length === v2 && keys.v3.length === v3,
  );
