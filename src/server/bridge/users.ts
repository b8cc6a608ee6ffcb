import { ignore } from '../../cancellation.ts';
import { V3Client } from '../../v3/client.ts';
import type { V3ClientOptions } from '../../v3/options.ts';
import { type KeysOfUsers, Overloaded, type ServedKeys } from '../served-keys.ts';
import { BridgedKeys } from './keys.ts';
import type { LeaseCounts } from './lease-counts.ts';

/** How many users a bridge serves at a time, besides its own. Each has connections to etcd, and is logged in there. */
const MOST_USERS = 100;

/** Milliseconds after its last request for which the connections of a user stay open. */
const IDLE_FOR = 60_000;

/** A user of etcd v3. */
interface User {
  readonly client: V3Client;
  readonly keys: ServedKeys;
  /** How many requests are under way. */
  busy: number;
  /** Set while no request is under way. */
  idle: NodeJS.Timeout | undefined;
}

/**
 * The keys of each user of a bridge. The name and the password of a request's basic authentication are those of a user of etcd v3,
 * who is logged in there. A request without them has the rights of the bridge's own user.
 */
export class BridgeUsers implements KeysOfUsers {
  /** The client of the bridge's own user. */
  readonly own: V3Client;
  readonly leases: LeaseCounts = { granted: 0, ended: 0 };
  readonly #options: V3ClientOptions;
  readonly #ownKeys: ServedKeys;
  readonly #users = new Map<string, User>();

  /** @throws {TypeError | RangeError} if an option is invalid; the message shows its value, but never a password */
  constructor(options: V3ClientOptions) {
    this.#options = options;
    this.own = new V3Client(options);
    this.#ownKeys = new BridgedKeys(this.own, this.leases);
  }

  get clusterId(): string | undefined {
    // The bridge's own user may never have asked for anything.
    return this.own.clusterId ?? [...this.#users.values()].find(({ client }) => client.clusterId)?.client.clusterId;
  }

  async use<T>(authorization: string | undefined, work: (keys: ServedKeys) => Promise<T>): Promise<T> {
    const credentials = credentialsIn(authorization);
    if (!credentials) return work(this.#ownKeys);
    const user = this.#user(credentials);
    user.busy += 1;
    clearTimeout(user.idle);
    user.idle = undefined;
    try {
      return await work(user.keys);
    } finally {
      user.busy -= 1;
      if (user.busy === 0) user.idle = setTimeout(() => void this.#forget(credentials), IDLE_FOR).unref();
    }
  }

  /** Ends all connections. Ends of leases that take longer are left to their TTL. */
  async close(): Promise<void> {
    const names = [...this.#users.keys()];
    await Promise.allSettled([close(this.own), ...names.map((name) => this.#forget(name))]);
  }

  #user(credentials: string): User {
    const known = this.#users.get(credentials);
    if (known) return known;
    if (this.#users.size >= MOST_USERS) this.#makeRoom();
    const colon = credentials.indexOf(':');
    const [username, password] = [credentials.slice(0, colon), credentials.slice(colon + 1)];
    const client = new V3Client({ ...this.#options, username, password });
    const user = { client, keys: new BridgedKeys(client, this.leases), busy: 0, idle: undefined };
    this.#users.set(credentials, user);
    return user;
  }

  /** @throws {Overloaded} if all users have requests under way */
  #makeRoom(): void {
    for (const [credentials, { busy }] of this.#users) if (busy === 0) return void this.#forget(credentials);
    throw new Overloaded(`no more than ${MOST_USERS} users can be served at a time`);
  }

  async #forget(credentials: string): Promise<void> {
    const user = this.#users.get(credentials);
    this.#users.delete(credentials);
    clearTimeout(user?.idle);
    if (user) await close(user.client);
  }
}

/** Closes a client. Leases that it was about to end would also expire. */
const close = (client: V3Client): Promise<void> => client.close({ timeout: 1 }).catch(ignore);

/** Returns `user:password`, or undefined if the header has none. etcd ignores a header that it cannot read. */
function credentialsIn(authorization: string | undefined): string | undefined {
  const [, encoded] = /^Basic ([A-Za-z0-9+/]+={0,2})$/i.exec(authorization ?? '') ?? [];
  const credentials = encoded && Buffer.from(encoded, 'base64').toString();
  return credentials && /^[^:]+:/.test(credentials) ? credentials : undefined;
}
