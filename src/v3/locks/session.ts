import type { PendingWork } from '../../base/pending-work.ts';
import type { LockRequests } from '../rpc/requests.ts';
import type { EntryKeys } from './entry-keys.ts';
import type { Leases } from './leases/leases.ts';
import type { LossWatch } from './losses/loss-watch.ts';

/** What all tickets of one client share. */
export interface Session {
  readonly requests: LockRequests;
  readonly leases: Leases;
  readonly losses: LossWatch;
  readonly keys: EntryKeys;
  /** Id of the cluster that answered last; undefined before the first answer. */
  readonly clusterId: string | undefined;
  /** Work that closing the client waits for. */
  readonly pending: PendingWork;
}
