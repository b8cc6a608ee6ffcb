import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import type { Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { checkInteger, show } from '../checks.ts';
import { Front } from './front/front.ts';
import { createHttpServer, listen } from './front/http-server.ts';
import { MemoryStore } from './store/memory.ts';
import { Store } from './store/store.ts';

export interface EmbeddedEtcdOptions {
  /** TCP port, 0 for any free one. Default 0. */
  readonly port?: number;
  /**
   * Address or name to listen on. Default `127.0.0.1`: nobody but this machine; there are no passwords. Clients reach the
   * server by an IP address, as `localhost` or by this name; a request for another host gets status 403.
   */
  readonly host?: string;
}

/**
 * An etcd v2 server inside this process, for tests and try-outs: what python-etcd, curl and this package can ask of
 * etcd's v2 keys API it answers as etcd 3.4 does. It is one process without a disk or replication: everything is gone
 * when it stops. Each start is a cluster of its own, with a new cluster id.
 *
 * Keys expire up to half a second after their TTL, as in etcd. Forms may have 1 MiB, and addresses have to be percent-encoded.
 * Requests of web pages get status 403.
 */
export class EmbeddedEtcd {
  /** Where it listens, such as `http://127.0.0.1:34567`. */
  readonly url: string;
  readonly #server: Server;
  readonly #store: Store;
  #stopped: Promise<void> | undefined;

  private constructor(server: Server, store: Store) {
    this.#server = server;
    this.#store = store;
    this.url = urlOf(server);
  }

  /**
   * Resolves when it can be asked. It keeps the process alive until {@link EmbeddedEtcd.stop}.
   * @throws {TypeError | RangeError} when an option cannot be used, with its value in the message
   * @throws the system's error when it cannot listen there (`EADDRINUSE` …)
   */
  static async start({ port = 0, host = '127.0.0.1' }: EmbeddedEtcdOptions = {}): Promise<EmbeddedEtcd> {
    checkEmbeddedOptions({ port, host });
    const server = createHttpServer();
    await listen(server, port, host);
    const store = new Store();
    const etcd = new EmbeddedEtcd(server, store);
    const id = randomBytes(8).toString('hex');
    const member = { id, name: 'embedded', peerURLs: [], clientURLs: [etcd.url] };
    server.on('request', new Front(new MemoryStore(store), member, host).listener);
    return etcd;
  }

  /** Stops listening and cuts every connection off, long polls included. Resolves when the port is free. */
  async stop(): Promise<void> {
    this.#stopped ??= this.#stop();
    return this.#stopped;
  }

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

/** @throws {TypeError | RangeError} with the value in the message */
export function checkEmbeddedOptions({ port, host }: Required<EmbeddedEtcdOptions>): void {
  checkInteger('port', port, 0);
  if (port > 65_535) throw new RangeError(`port must be at most 65535, got ${port}`);
  if (typeof host !== 'string' || host === '') throw new TypeError(`host must be an address, got ${show(host)}`);
}

/** One that can be called: an address that stands for all is reached by the loopback. */
function urlOf(server: Server): string {
  const { address, family, port } = server.address() as AddressInfo;
  const host = { '0.0.0.0': '127.0.0.1', '::': '::1' }[address] ?? address;
  return `http://${family === 'IPv6' ? `[${host}]` : host}:${port}`;
}
