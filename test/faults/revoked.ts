import type { QueueEvent } from './history.ts';
import { asksToRemove, renewedLease, termOf } from './stores/v3-requests.ts';
import type { Request } from './tcp-proxy.ts';

/**
 * Returns the removals that no client had asked for and that came before the lease of the entry could expire: less than its TTL
 * after the leader has confirmed a renewal. Every version of etcd makes them: a leader that was stopped for longer than the TTL, and is
 * resumed, may end leases that its successor has kept alive, at once, or before 3.4.31 also seven seconds later, when its first tries have
 * timed out.
 * Nobody can prevent that, and holders notice it at their next renewal.
 * @param requests all requests of the clients, from the proxies
 * @param ttl seconds
 */
export function revokedByEtcd(queue: readonly QueueEvent[], requests: readonly Request[], ttl: number): QueueEvent[] {
  const inOrder = requests.toSorted((one, other) => one.at - other.at);
  const renewals = new Map<string, number[]>();
  let latest = 0;
  for (const request of inOrder) {
    const term = termOf(request);
    const lease = renewedLease(request);
    // A leader that was replaced may confirm a renewal of a lease that is gone.
    if (lease !== undefined && term >= latest) renewals.set(lease, [...(renewals.get(lease) ?? []), request.at]);
    latest = Math.max(latest, term);
  }
  return queue.filter(({ action, key = '', rank, lease = '', at }) => {
    if (action !== 'gone') return false;
    const last = Math.max(...(renewals.get(lease) ?? []).filter((renewed) => renewed < at));
    // The holder also asks for the removal later, when it releases the lock or has noticed the loss.
    const isAsked = (request: Request): boolean => request.at < at && asksToRemove(request, key, rank, lease);
    return at < last + ttl * 1000 && !requests.some(isAsked);
  });
}
