import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { checkOptionNames, type OptionNames } from '../base/option-names.ts';
import { Front } from './front/front.ts';
import { createHttpServer, listen, type WebServer } from './front/http-server.ts';
import { checkListening, urlOf } from './listening.ts';
import { forEveryone } from './served-keys.ts';
import { MemoryStore } from './store/memory.ts';
import { Store } from './store/store.ts';

/** Options of {@link EmbeddedEtcd.start}. */
export interface EmbeddedEtcdOptions {
  /** TCP port to listen on. Default 0: any free port. */
  readonly port?: number;
  /**
   * IP address or host name to listen on. Default `127.0.0.1`: only this machine can connect. The server has no passwords.
   *
   * A request's `Host` header must contain an IP address, `localhost` or this name; otherwise it gets status 403.
   */
  readonly host?: string;
}

const OPTIONS = { port: true, host: true } satisfies OptionNames<EmbeddedEtcdOptions>;

/**
 * An etcd v2 server inside this process, for tests and local trials. It answers requests to the v2 keys API as etcd 3.4
 * does, whether they come from this package, python-etcd or curl.
 *
 * Keys are only in memory, and there is no replication: all keys are gone when the server stops. Each server is a cluster
 * of its own, with a new cluster id.
 *
 * As in etcd, keys expire up to half a second after their TTL. Unlike in etcd, forms may have at most 1 MiB, request paths
 * must be percent-encoded, and requests from web pages get status 403.
 *
 * @example
 * ```ts
 * import { EtcdClient, LockManager } from 'etcd-v2-lock';
 * import { EmbeddedEtcd } from 'etcd-v2-lock/server';
 *
 * const etcd = await EmbeddedEtcd.start();
 * const client = new EtcdClient({ endpoints: etcd.url });
 * const token = await new LockManager(client).request('file1', async (held) => held.fencingToken);
 * await client.close();
 * await etcd.stop();
 * ```
 */
export class EmbeddedEtcd {
  /** The URL for clients, such as `http://127.0.0.1:34567`. */
  readonly url: string;
  readonly #server: WebServer;
  readonly #store: Store;
  #stopped: Promise<void> | undefined;

  private constructor(server: WebServer, store: Store) {
    this.#server = server;
    this.#store = store;
    this.url = urlOf(server);
  }

  /**
   * Starts a server. Resolves when the server accepts requests. The server keeps the process alive until it is stopped by
   * {@link EmbeddedEtcd.stop}.
   * @param options where to listen
   * @throws {TypeError | RangeError} if an option is unknown or invalid; the message contains its name or value
   * @throws the system's error if the server cannot listen on that host and port, such as `EADDRINUSE`
   */
  static async start(options: EmbeddedEtcdOptions = {}): Promise<EmbeddedEtcd> {
    checkOptionNames(options, OPTIONS);
    const { port = 0, host = '127.0.0.1' } = options;
    checkListening({ port, host });
    const server = createHttpServer();
    await listen(server, port, host);
    const store = new Store();
    const etcd = new EmbeddedEtcd(server, store);
    const id = randomBytes(8).toString('hex');
    const member = { id, name: 'embedded', peerURLs: [], clientURLs: [etcd.url] };
    const keys = forEveryone(new MemoryStore(store));
    new Front({ keys, member, hosts: [host] }).serve(server);
    return etcd;
  }

  /**
   * Stops the server. Cuts off every connection, including long polls. Resolves when the port is free. Further calls have no
   * effect.
   */
  async stop(): Promise<void> {
    this.#stopped ??= this.#stop();
    return this.#stopped;
  }

  /** Stops the server at the end of an `await using` block. */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.stop();
  }

  async #stop(): Promise<void> {
    const closed = once(this.#server, 'close');
    this.#server.close();
    this.#server.closeAllConnections();
    await closed;
    this.#store.stop();
  }
}
