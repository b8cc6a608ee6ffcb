import { Deadline } from '../base/time.ts';
import { EtcdKeysLeft } from '../errors.ts';
import { type CloseOptions, closeTimeout, keysLeft } from '../http/cluster.ts';
import type { HttpOptions } from '../http/options.ts';
import type { MemberHealth, PingOptions } from '../http/ping.ts';
import type { LockClient } from '../recipe/client.ts';
import { V2Client } from '../v2/client.ts';
import { V3Client } from '../v3/client.ts';
import { BothStore } from './store.ts';

/** Options of a {@link BothClient}: how to reach the cluster, by either API. */
export interface BothClientOptions extends HttpOptions {
  /** Prefix of the keys of all locks, in both stores. Default `/_locks`. */
  readonly lockPrefix?: string;
  /** Path prefix of etcd's v2 API. Default `/v2`. */
  readonly versionPrefix?: string;
}

/** Connects locks to the two stores of an etcd cluster: by its v2 API, and by the JSON gateway of its v3 API. */
export class BothClient implements LockClient {
  readonly store: BothStore;
  readonly v2: V2Client;
  readonly v3: V3Client;
  #closed: Promise<void> | undefined;

  /** @throws {TypeError | RangeError} if an option is unknown or invalid; the message shows its value, but never a password */
  constructor(options: BothClientOptions = {}) {
    const { versionPrefix: _, ...common } = options;
    this.v2 = new V2Client(options);
    this.v3 = new V3Client(common);
    this.store = new BothStore({ v2: this.v2.store, v3: this.v3.store });
  }

  get lockPrefix(): string {
    return this.v2.lockPrefix;
  }

  get clusterId(): string | undefined {
    return this.store.clusterId;
  }

  /** See {@link EtcdClient.ping}. */
  async ping(options: PingOptions = {}): Promise<readonly MemberHealth[]> {
    return (await Promise.all([this.v2.ping(options), this.v3.ping(options)])).flat();
  }

  /** See {@link EtcdClient.close}. */
  async close(options: CloseOptions = {}): Promise<void> {
    const timeout = closeTimeout(options);
    this.#closed ??= this.#close(timeout);
    return this.#closed;
  }

  /**
   * Waits for the calls under way, then closes both clients. A call may have to remove keys from both stores, so neither client
   * may be closed earlier.
   */
  async #close(timeout: number): Promise<void> {
    const until = Deadline.after(timeout);
    const pending = await this.store.pending.settle(timeout);
    const left = pending.flatMap((key) => this.store.keysOf(key));
    const rest = { timeout: until.remaining / 1000 };
    left.push(...(await Promise.all([closed(this.v2, rest), closed(this.v3, rest)])).flat());
    if (left.length > 0) throw keysLeft(timeout, [...new Set(left)].sort());
  }
}

/** Closes a client. Resolves to the keys that it could not remove in time. */
async function closed(client: V2Client | V3Client, options: CloseOptions): Promise<readonly string[]> {
  try {
    await client.close(options);
    return [];
  } catch (error) {
    if (error instanceof EtcdKeysLeft) return error.keys;
    throw error;
  }
}
