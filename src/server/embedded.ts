import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { checkInteger, show } from '../base/checks.ts';
import { checkOptionNames, type OptionNames } from '../base/option-names.ts';
import { monotonicClock } from '../base/time.ts';
import { Front } from './front/front.ts';
import { createHttpServer, type WebServer } from './front/http-server.ts';
import { checkListening, type Listening, type ListeningOptions, listen, urlOf } from './listening.ts';
import { forEveryone } from './served-keys.ts';
import { MemoryStore } from './store/memory.ts';
import { Store } from './store/store.ts';
import { V3Gateway } from './v3/gateway/gateway.ts';
import { V3Member } from './v3/member.ts';
import { type EtcdVersion, RELEASES } from './version.ts';

/** Options of {@link EmbeddedEtcd.start}. */
export interface EmbeddedEtcdOptions extends ListeningOptions {
  /** The version of etcd whose answers the server gives. Default `3.4`, the last one with both APIs by default. */
  readonly version?: EtcdVersion;
  /**
   * The APIs to serve, each with keys of its own, as in etcd. Default `['v2', 'v3']`; with version `3.6`, which has no v2, `['v3']`.
   */
  readonly apis?: readonly ('v2' | 'v3')[];
  /** Number of changes that v3 keeps for watches and reads of the past. Older ones are compacted. Default 10,000. */
  readonly history?: number;
}

const OPTIONS = {
  port: true,
  host: true,
  socket: true,
  socketMode: true,
  version: true,
  apis: true,
  history: true,
} satisfies OptionNames<EmbeddedEtcdOptions>;

/** Options that have been checked, with their defaults. */
type Settings = Listening & Required<Omit<EmbeddedEtcdOptions, keyof ListeningOptions>>;

/** @throws {TypeError | RangeError} if an option is unknown or invalid; the message contains its name or value */
export function checkEmbeddedOptions(options: EmbeddedEtcdOptions): Settings {
  checkOptionNames(options, OPTIONS);
  const { version = '3.4', history = 10_000 } = options;
  const listening = checkListening(options);
  const versions: readonly unknown[] = Object.keys(RELEASES);
  if (!versions.includes(version))
    throw new TypeError(`version must be one of ${versions.join(', ')}, got ${show(version)}`);
  checkInteger('history', history, 1);
  const { apis = version === '3.6' ? ['v3'] : ['v2', 'v3'] } = options;
  if (!Array.isArray(apis) || apis.length === 0)
    throw new TypeError(
      `apis must be a list of v2, v3 or both, got ${Array.isArray(apis) ? 'an empty list' : show(apis)}`,
    );
  for (const api of apis)
    if (api !== 'v2' && api !== 'v3') throw new TypeError(`apis may contain v2 and v3, got ${show(api)}`);
  if (version === '3.6' && apis.includes('v2'))
    throw new TypeError('apis must be v3 alone with version 3.6: etcd 3.6 has no v2');
  return { ...listening, version, apis, history };
}

/**
 * An etcd server inside this process, for tests and local trials. It answers requests to the v2 keys API and to the JSON gateway of v3
 * as etcd 3.4 does, whether they come from this package, python-etcd or curl.
 *
 * Keys are only in memory, and there is no replication: all keys are gone when the server stops. Each server is a cluster
 * of its own, with a new cluster id.
 *
 * As in etcd, keys and leases expire up to half a second after their TTL. Unlike in etcd, forms may have at most 1 MiB, request paths
 * must be percent-encoded, and requests from web pages get status 403. docs/testing.md lists what else differs.
 *
 * @example
 * ```ts
 * import { EtcdClient, LockManager } from 'etcd-v2-lock';
 * import { EmbeddedEtcd } from 'etcd-v2-lock/server';
 *
 * const etcd = await EmbeddedEtcd.start();
 * const client = new EtcdClient({ endpoints: etcd.url, api: 'v3' });
 * const token = await new LockManager(client).request('file1', async (held) => held.fencingToken);
 * await client.close();
 * await etcd.stop();
 * ```
 */
export class EmbeddedEtcd {
  /** The URL for clients, such as `http://127.0.0.1:34567`. */
  readonly url: string;
  readonly #server: WebServer;
  readonly #stores: readonly { stop(): void }[];
  #stopped: Promise<void> | undefined;

  private constructor(server: WebServer, settings: Settings) {
    this.#server = server;
    this.url = urlOf(server);
    this.#stores = this.#serve(settings);
  }

  /**
   * Starts a server. Resolves when the server accepts requests. The server keeps the process alive until it is stopped by
   * {@link EmbeddedEtcd.stop}.
   * @param options where to listen, and what to serve
   * @throws {TypeError | RangeError} if an option is unknown or invalid; the message contains its name or value
   * @throws the system's error if the server cannot listen there, such as `EADDRINUSE`
   */
  static async start(options: EmbeddedEtcdOptions = {}): Promise<EmbeddedEtcd> {
    const settings = checkEmbeddedOptions(options);
    const server = createHttpServer();
    await listen(server, settings);
    return new EmbeddedEtcd(server, settings);
  }

  #serve({ host, version, apis, history }: Settings): readonly { stop(): void }[] {
    const store = new Store();
    const memberId = randomBytes(8).toString('hex');
    const name = 'embedded';
    const clientURLs = [this.url];
    const member = new V3Member({
      clusterId: BigInt(`0x${store.clusterId}`),
      memberId: BigInt(`0x${memberId}`),
      name,
      clientURLs,
      version,
      clock: monotonicClock,
      history,
    });
    new Front({
      keys: apis.includes('v2') ? forEveryone(new MemoryStore(store)) : undefined,
      gateway: apis.includes('v3') ? new V3Gateway(member) : undefined,
      member: { id: memberId, name, peerURLs: [], clientURLs },
      version,
      hosts: [host],
    }).serve(this.#server);
    return [store, member.store];
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
    for (const store of this.#stores) store.stop();
  }
}
