import type { Source } from '../../cancellation.ts';
import type { V3ClientOptions } from '../../v3/options.ts';
import { type KeysOfUsers, Overloaded, type ServedKeys } from '../served-keys.ts';
import { BACKENDS, type Backend, type BridgeApi, type Credentials } from './backend.ts';
import type { LeaseCounts } from './lease-counts.ts';

/** Maximum number of users that a bridge serves at a time, besides its own. Each has its own connections and login to etcd. */
const MOST_USERS = 100;

/** Milliseconds for which the connections of a user stay open after the last request. */
const IDLE_FOR = 60_000;

/** A user of etcd. */
interface User extends Backend {
  /** Number of requests in progress. */
  busy: number;
  /** Timer that closes the connections. Set while no request is in progress. */
  idle: NodeJS.Timeout | undefined;
}

/**
 * Serves each request with the rights of its user. A request with basic authentication has the rights of the etcd user with that
 * name and password. A request without it has the rights of the bridge's own user.
 */
export class BridgeUsers implements KeysOfUsers {
  readonly leases: LeaseCounts = { granted: 0, ended: 0 };
  readonly #start: (credentials?: Credentials) => Backend;
  readonly #own: Backend;
  readonly #users = new Map<string, User>();

  /** @throws {TypeError | RangeError} if an option is invalid; the message shows its value, but never a password */
  constructor(api: BridgeApi, options: V3ClientOptions) {
    const start = BACKENDS[api];
    this.#start = (credentials) => start({ ...options, ...credentials }, this.leases);
    this.#own = this.#start();
  }

  /** Reads each store once, with the rights of the bridge's own user. Returns a promise for each store. */
  check(signal: Source): Promise<unknown>[] {
    return this.#own.check(signal);
  }

  get clusterId(): string | undefined {
    // The client of the bridge's own user does not know the id before its first request.
    return this.#own.keys.clusterId ?? [...this.#users.values()].find(({ keys }) => keys.clusterId)?.keys.clusterId;
  }

  async use<T>(authorization: string | undefined, work: (keys: ServedKeys) => Promise<T>): Promise<T> {
    const credentials = credentialsIn(authorization);
    if (!credentials) return work(this.#own.keys);
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

  /** Closes all connections. Leases that cannot be revoked in time expire. */
  async close(): Promise<void> {
    const names = [...this.#users.keys()];
    await Promise.allSettled([this.#own.close(), ...names.map((name) => this.#forget(name))]);
  }

  #user(credentials: string): User {
    const known = this.#users.get(credentials);
    if (known) return known;
    if (this.#users.size >= MOST_USERS) this.#makeRoom();
    const colon = credentials.indexOf(':');
    const [username, password] = [credentials.slice(0, colon), credentials.slice(colon + 1)];
    const user = { ...this.#start({ username, password }), busy: 0, idle: undefined };
    this.#users.set(credentials, user);
    return user;
  }

  /** @throws {Overloaded} if all users have requests in progress */
  #makeRoom(): void {
    for (const [credentials, { busy }] of this.#users) if (busy === 0) return void this.#forget(credentials);
    throw new Overloaded(`limit of ${MOST_USERS} users reached: retry later, or use another server`);
  }

  async #forget(credentials: string): Promise<void> {
    const user = this.#users.get(credentials);
    this.#users.delete(credentials);
    clearTimeout(user?.idle);
    await user?.close();
  }
}

/** Returns `user:password`, or undefined if the header has none. etcd ignores a header that it cannot read. */
function credentialsIn(authorization: string | undefined): string | undefined {
  const [, encoded] = /^Basic ([A-Za-z0-9+/]+={0,2})$/i.exec(authorization ?? '') ?? [];
  const credentials = encoded && Buffer.from(encoded, 'base64').toString();
  return credentials && /^[^:]+:/.test(credentials) ? credentials : undefined;
}
