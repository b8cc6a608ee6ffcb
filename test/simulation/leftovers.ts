import type { Cluster } from './cluster/cluster.ts';
import type { Network } from './network/network.ts';
import type { Population } from './population.ts';
import { storedIn } from './stored.ts';

/** Returns what is left of a world whose processes have ended: nothing should be. */
export function leftovers(clusters: readonly Cluster[], network: Network, { clients, kept }: Population): string[] {
  const left = clusters.flatMap(leftIn);
  for (const connection of network.open) left.push(`a connection is left: ${connection}`);
  for (const { name, timers, isKilled } of clients)
    if (!isKilled && timers.size > 0) left.push(`${timers.size} timers are left in ${name}`);
  if (kept > 0) left.push(`${kept} values of entries are left in memory`);
  return left;
}

function leftIn(cluster: Cluster): string[] {
  const left: string[] = [];
  for (const { key, store } of storedIn(cluster)) left.push(`the key ${key} of ${store} is left`);
  const { ids } = cluster.v3.store.leases;
  // Those of records stay as long as the records.
  const leases = ids.filter((id) => (cluster.v3.store.leases.status(id)?.granted ?? 0n) < LONG);
  if (leases.length > 0) left.push(`${leases.length} leases are left`);
  if (cluster.v3.store.watchers > 0) left.push(`${cluster.v3.store.watchers} watchers of v3 are left`);
  for (const member of cluster.members)
    if (member.store.watchers > 0) left.push(`${member.store.watchers} watchers of v2 are left at ${member.name}`);
  return left;
}

/** Seconds. */
const LONG = 3600n;
