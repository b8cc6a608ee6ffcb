import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import type { Server } from 'node:http';
import { ignore, sleep } from '../../cancellation.ts';
import { show } from '../../checks.ts';
import type { EtcdClientOptions } from '../../client.ts';
import { checkOptionNames, type OptionNames } from '../../option-names.ts';
import { Deadline } from '../../time.ts';
import { V3Client } from '../../v3/client.ts';
import { V3_OPTIONS } from '../../v3/options.ts';
import { Front } from '../front/front.ts';
import { createHttpServer, listen } from '../front/http-server.ts';
import { checkListening, urlOf } from '../listening.ts';
import { BridgedKeys } from './keys.ts';

/** Options of {@link Bridge.start}: where to listen, and how to reach etcd v3. */
export interface BridgeOptions extends Omit<EtcdClientOptions, 'api' | 'versionPrefix' | 'lockPrefix'> {
  /** TCP port to listen on. Default 0: any free port. */
  readonly port?: number;
  /**
   * IP address or host name to listen on. Default `127.0.0.1`: only this machine can connect. The bridge asks for no passwords.
   *
   * A request's `Host` header must contain an IP address, `localhost`, this name, or that of an advertised URL; otherwise it gets
   * status 403.
   */
  readonly host?: string;
  /** Where the lock queues are, on both sides of the bridge: a key of etcd v2, so not empty. Default `/_locks`. */
  readonly lockPrefix?: string;
  /** URLs of all bridges, for clients that ask for the members of the cluster. Default: that of this bridge. */
  readonly advertise?: readonly string[];
}

const OPTIONS = { ...V3_OPTIONS, port: true, host: true, advertise: true } satisfies OptionNames<BridgeOptions>;

/** Seconds that requests under way may take when the bridge stops. */
const LAST_REQUESTS = 5;

/**
 * Serves locks on etcd v3 to clients of etcd v2: python-etcd's `Lock`, unchanged, and this package with `api: 'v2'`. They are in one
 * queue with clients of etcd v3. It serves nothing else than locks.
 *
 * A bridge keeps no state. Start as many as you like, and give clients the URLs of several: a client that goes on at another bridge
 * keeps its entry and its position.
 *
 * @example
 * ```ts
 * import { Bridge } from 'etcd-v2-lock/server';
 *
 * const bridge = await Bridge.start({ endpoints: 'http://127.0.0.1:2379', port: 4001 });
 * await bridge.stop();
 * ```
 */
export class Bridge {
  /** The URL for clients, such as `http://127.0.0.1:4001`. */
  readonly url: string;
  readonly #server: Server;
  readonly #client: V3Client;
  readonly #front: Front;
  #stopped: Promise<void> | undefined;

  private constructor(server: Server, client: V3Client, front: Front) {
    this.#server = server;
    this.#client = client;
    this.#front = front;
    this.url = urlOf(server);
  }

  /**
   * Starts a bridge. Resolves when it accepts requests; it does not check that it can reach etcd. The bridge keeps the process alive
   * until it is stopped by {@link Bridge.stop}.
   * @throws {TypeError | RangeError} if an option is unknown or invalid; the message contains its name or value, but never a password
   * @throws the system's error if the bridge cannot listen on that host and port, such as `EADDRINUSE`
   */
  static async start(options: BridgeOptions = {}): Promise<Bridge> {
    checkOptionNames(options, OPTIONS);
    const { port = 0, host = '127.0.0.1', advertise, ...cluster } = options;
    checkListening({ port, host });
    const hosts = (advertise ?? []).map(hostOf);
    if (cluster.lockPrefix !== undefined && !/^\/[^/]/.test(cluster.lockPrefix))
      throw new RangeError(`lockPrefix of a bridge must be a key of etcd v2, got ${show(cluster.lockPrefix)}`);
    const client = new V3Client(cluster);
    const server = createHttpServer();
    try {
      await listen(server, port, host);
    } catch (error) {
      await client.close({ timeout: 0 }).catch(ignore);
      throw error;
    }
    const id = randomBytes(8).toString('hex');
    const member = { id, name: 'bridge', peerURLs: [], clientURLs: advertise ?? [urlOf(server)] };
    const front = new Front(new BridgedKeys(client), member, [host, ...hosts]);
    server.on('request', front.listener);
    return new Bridge(server, client, front);
  }

  /**
   * Stops the bridge: accepts no more connections, cuts off clients that wait, and gives requests under way five seconds. Entries
   * stay, and clients can go on at another bridge. Resolves when the port is free. Further calls have no effect.
   */
  async stop(): Promise<void> {
    this.#stopped ??= this.#stop();
    return this.#stopped;
  }

  /** Stops the bridge at the end of an `await using` block. */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.stop();
  }

  async #stop(): Promise<void> {
    const closed = once(this.#server, 'close').then(() => true);
    this.#server.close();
    this.#front.endWaits();
    const limit = Deadline.after(LAST_REQUESTS);
    // A connection is idle only after its last request.
    while (!limit.passed && !(await Promise.race([closed, sleep(20).then(() => false)])))
      this.#server.closeIdleConnections();
    this.#server.closeAllConnections();
    await closed;
    // Leases that are being ended would also expire.
    await this.#client.close({ timeout: 1 }).catch(ignore);
  }
}

/** @throws {TypeError | RangeError} if an advertised URL is none */
function hostOf(url: string): string {
  if (typeof url === 'string' && /^https?:\/\/[^/]+\/?$/.test(url) && URL.canParse(url)) return new URL(url).hostname;
  throw new RangeError(`advertise must be URLs such as http://host:4001, got ${show(url)}`);
}
