import type { GatewayClient } from '../gateway/gateway.ts';
import { EntryRequests } from './entries.ts';
import { LeaseRequests } from './leases.ts';
import { ListingRequests } from './listings.ts';
import { WatchRequests } from './watches.ts';

/** The requests for lock queues and leases on etcd v3. */
export class LockRequests {
  /** Sends these requests. */
  readonly gateway: GatewayClient;
  readonly entries: EntryRequests;
  readonly listings: ListingRequests;
  readonly leases: LeaseRequests;
  readonly watches: WatchRequests;

  constructor(gateway: GatewayClient) {
    this.gateway = gateway;
    this.entries = new EntryRequests(gateway);
    this.listings = new ListingRequests(gateway);
    this.leases = new LeaseRequests(gateway);
    this.watches = new WatchRequests(gateway);
  }
}
