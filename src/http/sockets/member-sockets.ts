import type { LookupAddress } from 'node:dns';
import type { LookupFunction, Socket } from 'node:net';
import { detached } from '../../base/async-context.ts';
import type { Address } from '../checks/endpoints.ts';
import type { HttpSettings } from '../options.ts';
import { failOnAlert, isDistrusted } from '../tls/refusals.ts';
import type { TlsSettings } from '../tls/settings.ts';
import { type Connector, connectorOf } from '../transport.ts';
import { proxyFor } from './proxies.ts';
import { openTunnel } from './tunnel.ts';

/** Milliseconds. Shorter than the default `readTimeout`: a member that does not even accept a connection is probably down. */
const CONNECT_TIMEOUT = 2000;

/** Opens the sockets to one member, directly or through a proxy, with the present certificates. Remembers which are open. */
export class MemberSockets {
  readonly #settings: Pick<HttpSettings, 'tls' | 'tlsFiles'>;
  readonly #address: Address;
  /** URL of the proxy to reach the member by, if any. */
  readonly #proxy: string | undefined;
  readonly #lookup: LookupFunction | undefined;
  readonly #open = new Set<Socket>();
  /** Failures to connect: a request that waited for that connection was never sent. */
  readonly #failures = new WeakSet<Error>();
  /** Failures to connect because the member's certificate is not trusted. */
  readonly #distrusted = new WeakSet<Error>();

  /** @param addresses addresses of the host name, see the constructor of `Endpoint` */
  constructor(
    address: Address,
    settings: Pick<HttpSettings, 'tls' | 'tlsFiles' | 'proxies'>,
    addresses: readonly LookupAddress[] | undefined,
  ) {
    const { proxies } = settings;
    this.#settings = settings;
    this.#address = address;
    this.#proxy = proxies && address.socketPath === undefined ? proxyFor(address.origin, proxies) : undefined;
    this.#lookup = addresses && lookupOf(addresses);
  }

  /** The present certificates. */
  get tls(): TlsSettings {
    const { tls, tlsFiles } = this.#settings;
    return tlsFiles?.current ?? tls;
  }

  /** Whether there are any, open or connecting. */
  get areThere(): boolean {
    return this.#open.size > 0;
  }

  /** Whether an error is a failure to connect. */
  isFailureToConnect(error: Error): boolean {
    return this.#failures.has(error);
  }

  /** Whether an error is a failure to connect because the member's certificate is not trusted. */
  isDistrust(error: Error): boolean {
    return this.#distrusted.has(error);
  }

  /** Closes all, also those that are still connecting. */
  destroy(): void {
    for (const socket of this.#open) socket.destroy();
  }

  /**
   * Returns what opens the sockets of one connection.
   * @param isBackground whether they never keep the process alive
   * @param onSocket called with each of them, also while it is connecting
   */
  connector(isBackground: boolean, onSocket: (socket: Socket) => void): Connector {
    let used = this.tls;
    let connect = this.#connectorWith(used);
    return (options, callback) => {
      if (used !== this.tls) {
        used = this.tls;
        connect = this.#connectorWith(used);
      }
      const fail = (error: Error): void => {
        this.#failures.add(error);
        callback(error, null);
      };
      const open = (tunnel?: Socket): void => {
        const onConnect: typeof callback = (...args) => {
          const [error, connected] = args;
          if (!error) return callback(null, connected);
          if (isDistrusted(socket)) this.#distrusted.add(error);
          fail(error);
        };
        const through = tunnel && { httpSocket: tunnel };
        const socket = this.#track(isBackground, () => connect({ ...options, ...through }, onConnect));
        failOnAlert(socket);
        onSocket(socket);
      };
      if (this.#proxy === undefined) return open();
      const { origin } = this.#address;
      openTunnel(this.#proxy, origin, this.#connectorToProxy(isBackground), CONNECT_TIMEOUT).then((tunnel) => {
        // With TLS, there is one more socket on top of it.
        if (options.protocol === 'https:') return open(tunnel);
        onSocket(tunnel);
        callback(null, tunnel);
      }, fail);
    };
  }

  #connectorWith({ serverName, ...identity }: TlsSettings): Connector {
    const { socketPath } = this.#address;
    return strictConnector({
      ...identity,
      ...(serverName === undefined ? {} : { servername: serverName }),
      ...(socketPath === undefined ? this.#lookup && { lookup: this.#lookup } : { socketPath }),
    });
  }

  #connectorToProxy(isBackground: boolean): Connector {
    const connect = strictConnector({});
    return (options, callback) => void this.#track(isBackground, () => connect(options, callback));
  }

  /** Opens a socket, and remembers it until it is closed. */
  #track(isBackground: boolean, open: () => unknown): Socket {
    // undici's types omit the returned socket. It is needed to unref a socket that is still connecting.
    const socket = detached(open) as Socket;
    this.#open.add(socket);
    socket.once('close', () => this.#open.delete(socket));
    if (isBackground) unrefForGood(socket);
    return socket;
  }
}

function strictConnector(options: object): Connector {
  // Explicit, because NODE_TLS_REJECT_UNAUTHORIZED=0 changes the default.
  const all = { timeout: CONNECT_TIMEOUT, rejectUnauthorized: true, ...options };
  return connectorOf(all as Parameters<typeof connectorOf>[0]);
}

/** Returns a function for `net.connect` that finds these addresses. Node tries them one after the other if it asks for all. */
const lookupOf =
  (addresses: readonly LookupAddress[]): LookupFunction =>
  (_, { all }, callback) => {
    const [first] = addresses;
    // As Node's own function: not before this one has returned.
    process.nextTick(() => {
      if (all) callback(null, [...addresses]);
      else callback(null, first?.address ?? '', first?.family);
    });
  };

/** Makes sure that a socket never keeps the process alive, even when undici calls `ref()` on it. */
function unrefForGood(socket: Socket): void {
  socket.unref();
  socket.ref = () => socket;
}
