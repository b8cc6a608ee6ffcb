import { ignore } from '../../cancellation.ts';
import { V2Client } from '../../v2/client.ts';
import { V3Client } from '../../v3/client.ts';
import type { V3ClientOptions } from '../../v3/options.ts';
import type { ServedKeys } from '../served-keys.ts';
import { BothKeys } from './both/keys.ts';
import type { LeaseCounts } from './lease-counts.ts';
import { BridgedKeys } from './v3/keys.ts';

/** Store in which the clients of a bridge hold their locks: etcd v3, or both v2 and v3. */
export type BridgeApi = 'v3' | 'both';

export type Credentials = Pick<V3ClientOptions, 'username' | 'password'>;

/** The client of etcd and the keys for the requests of one user. */
export interface Backend {
  readonly v3: V3Client;
  readonly keys: ServedKeys;
  /** Closes the connections to etcd. Waits up to a second for leases to be revoked; the others expire. */
  close(): Promise<void>;
}

/**
 * Creates the backend of one user.
 * @throws {TypeError | RangeError} if an option is invalid; the message shows its value, but never a password
 */
type Start = (options: V3ClientOptions, leases: LeaseCounts) => Backend;

export const BACKENDS: Readonly<Record<BridgeApi, Start>> = {
  v3(options, leases) {
    const v3 = new V3Client(options);
    return { v3, keys: new BridgedKeys(v3, leases), close: () => close(v3) };
  },
  both(options, leases) {
    const [v2, v3] = [new V2Client(options), new V3Client(options)];
    return {
      v3,
      keys: new BothKeys(v2, v3, leases),
      async close() {
        await Promise.all([close(v2), close(v3)]);
      },
    };
  },
};

const close = (client: V2Client | V3Client): Promise<void> => client.close({ timeout: 1 }).catch(ignore);
