import type { PendingWork } from '../base/pending-work.ts';
import { Deadline } from '../base/time.ts';
import type { CloseOptions } from '../http/cluster.ts';
import type { MemberHealth, PingOptions } from '../http/ping.ts';
import type { LockClient } from '../recipe/client.ts';
import type { Surveyor } from '../recipe/survey.ts';
import { GatewayClient } from './gateway/gateway.ts';
import { EntryKeys } from './locks/entry-keys.ts';
import { Leases } from './locks/leases/leases.ts';
import { LossWatch } from './locks/losses/loss-watch.ts';
import type { Session } from './locks/session.ts';
import { V3LockStore } from './locks/store.ts';
import { checkV3Options, type V3ClientOptions } from './options.ts';
import { LockRequests } from './rpc/requests.ts';

/** Maximum seconds that closing the client waits until its leases are revoked. */
const LEASES = 1;

/** Connects locks to an etcd cluster by the JSON gateway of its v3 API (etcd 3.3 and later). */
export class V3Client implements LockClient, Session {
  readonly store: V3LockStore;
  readonly surveyor: Surveyor;
  readonly lockPrefix: string;
  readonly gateway: GatewayClient;
  readonly requests: LockRequests;
  readonly leases: Leases;
  readonly losses: LossWatch;
  readonly keys = new EntryKeys();

  /** @throws {TypeError | RangeError} if an option is unknown or invalid; the message shows its name or value, never a password */
  constructor(options: V3ClientOptions = {}) {
    const settings = checkV3Options(options);
    this.lockPrefix = settings.lockPrefix;
    this.gateway = new GatewayClient(settings);
    this.requests = new LockRequests(this.gateway);
    this.leases = new Leases(this.requests);
    this.losses = new LossWatch(this.requests);
    this.store = new V3LockStore(this, this.lockPrefix);
    this.surveyor = this.store.surveyor;
  }

  get clusterId(): string | undefined {
    return this.gateway.clusterId;
  }

  get pending(): PendingWork {
    return this.gateway.pending;
  }

  /**
   * Logs in at a member. Does nothing without a password, or if authentication is not enabled.
   * @throws {EtcdInsufficientPermissions} if etcd refuses the user or the password
   */
  logIn(): Promise<void> {
    return this.gateway.call('safe', { lane: 'read' }, async () => {});
  }

  /** See {@link EtcdClient.ping}. */
  async ping(options: PingOptions = {}): Promise<readonly MemberHealth[]> {
    return this.gateway.ping(options);
  }

  close(options: CloseOptions = {}): Promise<void> {
    // Revoke the leases after their entries were removed. If that fails, the leases expire.
    return this.gateway.close(options, (until) =>
      this.leases.settle(new Deadline(Math.min(until.at, Deadline.after(LEASES).at))),
    );
  }
}
