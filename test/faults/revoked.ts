import type { QueueEvent } from './history.ts';
import { asksToRemove, renewedLease } from './stores/v3-requests.ts';
import type { Request } from './tcp-proxy.ts';

/**
 * Returns the removals that no client has asked for and that came before the lease of the entry could expire: less than its TTL
 * after etcd has confirmed a renewal. An etcd before 3.4.31 makes them: a leader that was stopped for longer than the TTL, and is
 * resumed, may end leases that its successor has kept alive. Nobody can prevent that, and holders notice it at their next renewal.
 * @param requests all requests of the clients, from the proxies
 * @param ttl seconds
 */
export function revokedByEtcd(queue: readonly QueueEvent[], requests: readonly Request[], ttl: number): QueueEvent[] {
  const renewals = new Map<string, number[]>();
  for (const request of requests) {
    const lease = renewedLease(request);
    if (lease !== undefined) renewals.set(lease, [...(renewals.get(lease) ?? []), request.at]);
  }
  return queue.filter(({ action, key = '', rank, lease = '', at }) => {
    if (action !== 'gone') return false;
    const last = Math.max(...(renewals.get(lease) ?? []).filter((renewed) => renewed < at));
    return at < last + ttl * 1000 && !requests.some((request) => asksToRemove(request, key, rank, lease));
  });
}
