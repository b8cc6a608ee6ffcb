/** Findings on what the two stores of etcd contain. */
import { show } from '../../../base/checks.ts';
import type { StoreApi } from '../../../client.ts';
import type { EndpointFacts, Facts, Finding } from '../facts.ts';
import { findingFor, firstOf } from './finding.ts';

const finding = findingFor();

export function judgeStores({ api = 'v2', endpoints }: Facts): Finding[] {
  const stores = storesOf(endpoints);
  return [...contents(stores, endpoints), ...inBoth(stores), ...(api === 'v3' ? withoutLease(endpoints) : [])];
}

/** Names of the locks in each store that could be read. */
export type LocksByStore = NonNullable<EndpointFacts['locks']>;

/** Returns the locks in each store. Prefers the listing of the leader: on etcd v2, that of another member may be out of date. */
export function storesOf(endpoints: readonly EndpointFacts[]): LocksByStore {
  const [leaders, others] = [true, false].map((wanted) =>
    endpoints.filter(({ id, leader }) => (id !== undefined && id === leader) === wanted),
  );
  const inOrder = [...(leaders ?? []), ...(others ?? [])];
  const namesIn = (api: StoreApi) => inOrder.find(({ locks }) => locks?.[api])?.locks?.[api];
  const [v2, v3] = [namesIn('v2'), namesIn('v3')];
  return { ...(v2 && { v2 }), ...(v3 && { v3 }) };
}

function contents(stores: LocksByStore, endpoints: readonly EndpointFacts[]): Finding[] {
  if (!stores.v2 && !stores.v3) return [];
  const texts = (['v2', 'v3'] as const).flatMap((api) => {
    const exists = stores[api] ?? endpoints.some((member) => member[api]?.on);
    return exists ? `${countOf(stores[api])} in the ${api} store` : [];
  });
  return [finding('ok', 'stores', `locks with entries: ${texts.join('; ')}`)];
}

function countOf(names: readonly string[] | undefined): string {
  if (!names) return 'unknown';
  return names.length === 0 ? 'none' : `${names.length} (${firstOf(names.map(show))})`;
}

function inBoth({ v2 = [], v3 = [] }: LocksByStore): Finding[] {
  const onV3 = new Set(v3);
  const names = v2.filter((name) => onV3.has(name));
  if (names.length === 0) return [];
  const text =
    `clients of both APIs use the same lock names: ${firstOf(names.map(show))}. ` +
    'A v2 client and a v3 client can hold such a lock at the same time';
  return [
    finding(
      'warn',
      'stores',
      text,
      'use the same API for all clients of a lock, except while you move them with the API "both"',
    ),
  ];
}

function withoutLease(endpoints: readonly EndpointFacts[]): Finding[] {
  const keys = endpoints.find(({ withoutLease }) => withoutLease)?.withoutLease ?? [];
  if (keys.length === 0) return [];
  const text =
    `lock queues contain keys without a lease, which never expire: ${firstOf(keys.map(show))}. ` +
    'All clients of these locks wait until such a key is removed';
  const advice =
    'remove these keys with etcdctl del, unless they are entries of holders without a TTL; keep other data elsewhere';
  return [finding('warn', 'leases', text, advice)];
}
