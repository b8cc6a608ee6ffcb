import type { Source } from '../../../base/cancellation.ts';
import type { V3ClientOptions } from '../../../v3/options.ts';
import { type KeysOfUsers, Overloaded, type ServedKeys } from '../../served-keys.ts';
import { BACKENDS, type Backend, type BridgeApi, type Credentials } from '../backend.ts';
import { isLogInRefused, translated } from '../errors.ts';
import type { HealthReads } from '../health.ts';
import type { LeaseCounts } from '../lease-counts.ts';
import { retried } from '../retry.ts';
import { LogIns } from './log-ins.ts';

/** Maximum number of logged-in users that a bridge serves at a time, besides its own. Each has its own connections to etcd. */
const MOST_USERS = 100;

/** Milliseconds for which the connections of a user stay open after the last request. */
const IDLE_FOR = 60_000;

/** A user whom etcd has accepted. */
interface User extends Backend {
  /** The name under which the credentials are kept; see {@link LogIns.nameOf}. */
  readonly name: string;
  /** Number of requests in progress. */
  busy: number;
  /** Timer that closes the connections. Set while no request is in progress. */
  idle: NodeJS.Timeout | undefined;
}

/**
 * Serves each request with the rights of its user. A request with basic authentication has the rights of the etcd user with that
 * name and password. A request without it has the rights of the bridge's own user.
 */
export class BridgeUsers implements KeysOfUsers, HealthReads {
  readonly leases: LeaseCounts = { granted: 0, ended: 0 };
  readonly #start: (credentials?: Credentials) => Backend;
  readonly #own: Backend;
  readonly #logIns = new LogIns();
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

  /** Whether the cluster has an alarm, such as NOSPACE. */
  hasAlarm(signal: Source): Promise<boolean> {
    return this.#own.hasAlarm(signal);
  }

  get clusterId(): string | undefined {
    // The client of the bridge's own user does not know the id before its first request.
    return this.#own.keys.clusterId ?? [...this.#users.values()].find(({ keys }) => keys.clusterId)?.keys.clusterId;
  }

  async use<T>(authorization: string | undefined, work: (keys: ServedKeys) => Promise<T>): Promise<T> {
    const credentials = credentialsIn(authorization);
    if (!credentials) return work(this.#own.keys);
    const name = this.#logIns.nameOf(credentials);
    for (;;) {
      const user = this.#users.get(name);
      if (user) return this.#serve(user, work);
      await translated(() => this.#logIns.run(name, () => this.#logIn(name, credentials)));
    }
  }

  /** Closes all connections. Leases that cannot be revoked in time expire. */
  async close(): Promise<void> {
    const users = [...this.#users.values()];
    this.#users.clear();
    for (const { idle } of users) clearTimeout(idle);
    await Promise.allSettled([this.#own, ...users].map((user) => user.close()));
  }

  async #serve<T>(user: User, work: (keys: ServedKeys) => Promise<T>): Promise<T> {
    user.busy += 1;
    clearTimeout(user.idle);
    user.idle = undefined;
    try {
      return await work(user.keys);
    } catch (error) {
      // The password was changed, or the user was deleted. The next request has to log in again.
      if (isLogInRefused(error) && this.#users.get(user.name) === user) this.#users.delete(user.name);
      throw error;
    } finally {
      user.busy -= 1;
      if (user.busy === 0) this.#rest(user);
    }
  }

  /** Closes the connections of a user without requests: at once if the user is no longer accepted, and otherwise after a while. */
  #rest(user: User): void {
    if (this.#users.get(user.name) !== user) return void user.close();
    user.idle = setTimeout(() => this.#forget(user), IDLE_FOR).unref();
  }

  /** @throws {EtcdInsufficientPermissions} if etcd refuses the user or the password */
  async #logIn(name: string, credentials: string): Promise<void> {
    const colon = credentials.indexOf(':');
    const [username, password] = [credentials.slice(0, colon), credentials.slice(colon + 1)];
    const backend = this.#start({ username, password });
    try {
      await retried(() => backend.logIn());
      if (this.#users.size >= MOST_USERS) this.#makeRoom();
    } catch (error) {
      void backend.close();
      throw error;
    }
    const user: User = { ...backend, name, busy: 0, idle: undefined };
    this.#users.set(name, user);
    this.#rest(user);
  }

  /** @throws {Overloaded} if all users have requests in progress */
  #makeRoom(): void {
    const idle = [...this.#users.values()].find(({ busy }) => busy === 0);
    if (!idle) throw new Overloaded(`limit of ${MOST_USERS} users reached: retry later, or use another server`);
    this.#forget(idle);
  }

  #forget(user: User): void {
    this.#users.delete(user.name);
    clearTimeout(user.idle);
    void user.close();
  }
}

/** Returns `user:password`, or undefined if the header has none. etcd ignores a header that it cannot read. */
function credentialsIn(authorization: string | undefined): string | undefined {
  const [, encoded] = /^Basic ([A-Za-z0-9+/]+={0,2})$/i.exec(authorization ?? '') ?? [];
  const credentials = encoded && Buffer.from(encoded, 'base64').toString();
  return credentials && /^[^:]+:/.test(credentials) ? credentials : undefined;
}
