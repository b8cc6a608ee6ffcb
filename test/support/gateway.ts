import { inject } from 'vitest';
import type { Entry } from '../../src/recipe/store.ts';

export const base64 = (text: string): string => Buffer.from(text).toString('base64');
const textOf = (encoded = ''): string => Buffer.from(encoded, 'base64').toString();

interface RawKey {
  readonly key: string;
  readonly value?: string;
  readonly create_revision: string;
  readonly lease?: string;
}

/** Sends one plain request to etcd's JSON gateway, so that a test does not use the client to check the client. */
export async function gateway(
  path: string,
  message: object,
  etcd = inject('etcd'),
): Promise<Record<string, never> & { kvs?: RawKey[]; ID: string; TTL: string; leases?: { ID: string }[] }> {
  const response = await fetch(`${etcd}/v3${path}`, { method: 'POST', body: JSON.stringify(message) });
  return (await response.json()) as never;
}

/** The keys that begin with a prefix, in the order of their creation. */
export async function entriesBelow(prefix: string, etcd = inject('etcd')): Promise<Entry[]> {
  const end = Buffer.from(prefix);
  end[end.length - 1] = (end.at(-1) ?? 0) + 1;
  const range = { key: base64(prefix), range_end: end.toString('base64'), sort_target: 'CREATE', sort_order: 'ASCEND' };
  const { kvs = [] } = await gateway('/kv/range', range, etcd);
  return Promise.all(
    kvs.map(async ({ key, value, create_revision: created, lease }) => ({
      key: textOf(key),
      value: textOf(value),
      rank: BigInt(created),
      ttl: lease === undefined ? undefined : Number((await gateway('/lease/timetolive', { ID: lease }, etcd)).TTL),
    })),
  );
}
