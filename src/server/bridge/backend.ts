import { ignore, type Source } from '../../base/cancellation.ts';
import { V2Client } from '../../v2/client.ts';
import { V3Client } from '../../v3/client.ts';
import type { V3ClientOptions } from '../../v3/options.ts';
import { readAlarms } from '../../v3/rpc/alarms.ts';
import type { ServedKeys } from '../served-keys.ts';
import { BothKeys } from './both/keys.ts';
import type { LeaseCounts } from './lease-counts.ts';
import { BridgedKeys } from './v3/keys.ts';

/** Store in which the clients of a bridge hold their locks: etcd v3, or both v2 and v3. */
export type BridgeApi = 'v3' | 'both';

/** @internal */
export type Credentials = Pick<V3ClientOptions, 'username' | 'password'>;

/**
 * The keys for the requests of one user, and the connections to etcd behind them.
 * @internal
 */
export interface Backend {
  readonly keys: ServedKeys;
  /** Reads each store once, for which a majority of its members must work. Returns a promise for each store. */
  check(signal: Source): Promise<unknown>[];
  /**
   * Logs in to v3. On v2, each request has the password.
   * @throws {EtcdInsufficientPermissions} if etcd refuses the user or the password
   */
  logIn(): Promise<void>;
  /** Whether the cluster has an alarm, such as NOSPACE. False if that cannot be read. */
  hasAlarm(signal: Source): Promise<boolean>;
  /** Closes the connections to etcd. Waits up to a second for leases to be revoked; the others expire. */
  close(): Promise<void>;
}

/**
 * Creates the backend of one user.
 * @throws {TypeError | RangeError} if an option is invalid; the message shows its value, but never a password
 */
type Start = (options: V3ClientOptions, leases: LeaseCounts) => Backend;

/** @internal */
export const BACKENDS: Readonly<Record<BridgeApi, Start>> = {
  v3(options, leases) {
    const v3 = new V3Client(options);
    return {
      keys: new BridgedKeys(v3, leases),
      check: (signal) => [readV3(v3, signal)],
      logIn: () => v3.logIn(),
      hasAlarm: (signal) => hasAlarm(v3, signal),
      close: () => close(v3),
    };
  },
  both(options, leases) {
    const [v2, v3] = [new V2Client(options), new V3Client(options)];
    return {
      keys: new BothKeys(v2, v3, leases),
      check: (signal) => [readV2(v2, signal), readV3(v3, signal)],
      logIn: () => v3.logIn(),
      hasAlarm: (signal) => hasAlarm(v3, signal),
      async close() {
        await Promise.all([close(v2), close(v3)]);
      },
    };
  },
};

// Reads a key, and not the prefix: its answer would name all locks. That the key does not exist is an answer, too.
const readV2 = (client: V2Client, signal: Source) =>
  client.get(`${client.lockPrefix}/_health`, { quorum: true, signal });

const readV3 = (client: V3Client, signal: Source) => client.requests.entries.get(client.lockPrefix, { signal });

const hasAlarm = (client: V3Client, signal: Source): Promise<boolean> =>
  readAlarms(client.gateway, { signal }).then(
    (alarms) => alarms.length > 0,
    () => false,
  );

const close = (client: V2Client | V3Client): Promise<void> => client.close({ timeout: 1 }).catch(ignore);
