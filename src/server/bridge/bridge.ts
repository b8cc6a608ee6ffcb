import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { Server as HttpsServer } from 'node:https';
import type { TlsOptions } from 'node:tls';
import { promisify } from 'node:util';
import { sleep } from '../../base/cancellation.ts';
import { Deadline } from '../../base/time.ts';
import { EtcdUnusableAnswer } from '../../errors.ts';
import type { TlsFiles } from '../../http/tls/files.ts';
import { Front } from '../front/front.ts';
import { createHttpServer, type WebServer } from '../front/http-server.ts';
import { listen, urlOf } from '../listening.ts';
import { originalOf } from './errors.ts';
import { failedReads, Health } from './health.ts';
import { Metrics } from './metrics.ts';
import { type BridgeOptions, type BridgeSettings, checkBridgeOptions } from './options.ts';
import { requestRecord } from './records.ts';
import { BridgeUsers } from './users/users.ts';

export type { BridgeOptions };

/** Maximum seconds for the requests in progress when the bridge stops. */
const LAST_REQUESTS = 5;

/**
 * Limits for requests. No request of a lock is as large, or takes as long to arrive. A client that sends a request each minute keeps its
 * connection.
 */
const REQUESTS = { maxHeaderSize: 16_384, requestTimeout: 30, idleTimeout: 70 };

/**
 * Serves locks on etcd v3 to clients of etcd v2: python-etcd's `Lock`, unchanged, and this package with `api: 'v2'`. These clients
 * share queues with clients of etcd v3. A bridge serves only locks.
 *
 * A bridge keeps no state. Start as many as you like, and give clients the URLs of several: a client that fails over to another
 * bridge keeps its entry and its position.
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
  readonly #server: WebServer;
  readonly #users: BridgeUsers;
  readonly #front: Front;
  readonly #log: BridgeSettings['log'];
  readonly #tls: TlsFiles | undefined;
  readonly #endOfChanges: (() => void) | undefined;
  #stopped: Promise<void> | undefined;

  private constructor(server: WebServer, users: BridgeUsers, settings: BridgeSettings) {
    this.#server = server;
    this.#users = users;
    this.#log = settings.log;
    this.url = urlOf(server);
    this.#tls = settings.tls;
    this.#endOfChanges = settings.tls?.onChange(this.#onTlsChange);
    this.#front = this.#serve(settings);
  }

  /**
   * Starts a bridge. Resolves when it accepts requests. It also starts while etcd is down: it then serves requests as soon as etcd does,
   * and the start takes up to three seconds. The bridge keeps the process alive until it is stopped by {@link Bridge.stop}.
   * @throws {EtcdUnusableAnswer} if etcd answers, but has not the API that a bridge needs: etcd v3 before 3.3, or without its gateway,
   *   or, with `api: 'both'`, without the v2 API
   * @throws {TypeError | RangeError} if an option is unknown or invalid; the message contains its name or value, but never a password
   * @throws the system's error if the bridge cannot listen there, such as `EADDRINUSE`
   */
  static async start(options: BridgeOptions = {}): Promise<Bridge> {
    const settings = checkBridgeOptions(options);
    const users = new BridgeUsers(settings.api, settings.cluster);
    const server = createHttpServer({
      ...REQUESTS,
      maxConnections: settings.maxConnections,
      tls: settings.tls?.current,
    });
    try {
      await checkApis(users);
      await listen(server, settings);
    } catch (error) {
      await users.close();
      throw error;
    }
    return new Bridge(server, users, settings);
  }

  /**
   * Reads the files of the option `tls` now, even if they seem unchanged; see {@link BridgeTls.certFile}.
   * @internal
   */
  async reloadTls(): Promise<void> {
    await this.#tls?.reload();
  }

  /**
   * Stops the bridge: accepts no more connections, cuts off long polls, and waits up to five seconds for requests in progress.
   * Entries stay in their queues, and clients can fail over to another bridge. Resolves when the port is free. Further calls have
   * no effect.
   */
  async stop(): Promise<void> {
    this.#stopped ??= this.#stop();
    return this.#stopped;
  }

  /** Stops the bridge at the end of an `await using` block. */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.stop();
  }

  #serve({ hosts, advertise, maxPolls, metrics: showMetrics, log }: BridgeSettings): Front {
    const id = randomBytes(8).toString('hex');
    const member = { id, name: 'bridge', peerURLs: [], clientURLs: advertise ?? [this.url] };
    const health = new Health(this.#users, log);
    const countConnections = promisify(this.#server.getConnections.bind(this.#server));
    const metrics = new Metrics(async () => ({
      openPolls: front.waits,
      connections: await countConnections(),
      isReachable: health.isReachable,
      leases: this.#users.leases,
    }));
    const front: Front = new Front({
      keys: this.#users,
      member,
      hosts,
      pages: [
        ['/health', health.page],
        ['/v2/members/leader', health.leaderPage(member)],
        ...(showMetrics ? ([['/metrics', metrics.page]] as const) : []),
      ],
      maxWaits: maxPolls,
      onServed: (served) => {
        metrics.count(served);
        if (served.call && !served.isCutOff) health.saw(originalOf(served.error));
        log?.(requestRecord(served));
      },
    });
    front.serve(this.#server);
    log?.({ event: 'listening', url: this.url });
    return front;
  }

  readonly #onTlsChange = (): void => {
    if (this.#server instanceof HttpsServer) this.#server.setSecureContext(this.#tls?.current as TlsOptions);
  };

  async #stop(): Promise<void> {
    this.#endOfChanges?.();
    this.#log?.({ event: 'stopping' });
    const closed = once(this.#server, 'close').then(() => true);
    this.#server.close();
    this.#front.endWaits();
    const limit = Deadline.after(LAST_REQUESTS);
    // Repeat this: a connection is idle only after its last request has been answered.
    while (!limit.passed && !(await Promise.race([closed, sleep(20).then(() => false)])))
      this.#server.closeIdleConnections();
    this.#server.closeAllConnections();
    await closed;
    await this.#users.close();
    this.#log?.({ event: 'stopped' });
  }
}

/** @throws {EtcdUnusableAnswer} if a store of etcd cannot serve any request of a bridge, now or later */
async function checkApis(users: BridgeUsers): Promise<void> {
  const errors = await failedReads((signal) => users.check(signal));
  const lasting = errors.find((error) => error instanceof EtcdUnusableAnswer);
  if (lasting) throw lasting;
}
