import type { ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { now } from '../../../base/time.ts';
import type { WebServer } from './upgrades.ts';

/** Milliseconds for which a new connection without a request keeps its place when further clients connect. */
const NEW_FOR = 5000;

/** Limits for the connections of a server. */
export interface ConnectionLimits {
  /** Maximum number of connections at a time. A further one replaces one that is idle, or is closed. Default: no limit. */
  readonly maxConnections?: number | undefined;
  /** Maximum seconds between an answer and the next request; 0: no limit. Default 0, as in etcd. */
  readonly idleTimeout?: number;
}

/** Applies the limits to a server. */
export function limitConnections(server: WebServer, limits: ConnectionLimits): void {
  const connections = new Connections(limits);
  server.on('connection', (socket: Socket) => connections.accept(socket));
  server.on('request', ({ socket }, response) => connections.use(socket, response));
}

/** A connection of a client. */
interface Connection {
  /** With TLS, its requests come from another socket than the accepted one. */
  readonly accepted: Socket;
  readonly acceptedAt: number;
  /** Number of unanswered requests. */
  unanswered: number;
}

class Connections {
  readonly #max: number;
  /** Milliseconds. */
  readonly #idleTimeout: number;
  /** By the address of the client; with a Unix socket, which has none, by the connection itself. */
  readonly #all = new Map<string | Socket, Connection>();
  /** Those without a request so far, the oldest first. */
  readonly #unused = new Set<Connection>();
  /** Those whose requests have all been answered, the longest idle first. */
  readonly #idle = new Set<Connection>();

  constructor({ maxConnections = Number.POSITIVE_INFINITY, idleTimeout = 0 }: ConnectionLimits) {
    this.#max = maxConnections;
    this.#idleTimeout = idleTimeout * 1000;
  }

  accept(socket: Socket): void {
    const address = addressOf(socket);
    if (this.#all.has(address)) return; // the server gets the connection again after an offer to upgrade
    if (this.#all.size >= this.#max && !this.#makeRoom()) return void socket.destroy();
    const connection = { accepted: socket, acceptedAt: now(), unanswered: 0 };
    this.#all.set(address, connection);
    this.#unused.add(connection);
    socket.once('close', () => {
      if (this.#all.get(address) === connection) this.#all.delete(address);
      this.#unused.delete(connection);
      this.#idle.delete(connection);
    });
  }

  /** Counts a request until it is answered. */
  use(socket: Socket, response: ServerResponse): void {
    const connection = this.#all.get(addressOf(socket));
    if (!connection) return; // closed
    this.#unused.delete(connection);
    this.#idle.delete(connection);
    connection.unanswered += 1;
    socket.setTimeout(0);
    response.once('close', () => {
      connection.unanswered -= 1;
      if (connection.unanswered > 0 || socket.destroyed) return;
      this.#idle.add(connection);
      socket.setTimeout(this.#idleTimeout); // Node closes the connection then
    });
  }

  /** Closes a connection that is not in use. Returns false if there is none. */
  #makeRoom(): boolean {
    const [idle] = this.#idle;
    const [unused] = this.#unused;
    const leaving = idle ?? (unused && now() - unused.acceptedAt > NEW_FOR ? unused : undefined);
    leaving?.accepted.destroy();
    return leaving !== undefined;
  }
}

/** With TLS, requests come from another socket, which has the same address. */
function addressOf(socket: Socket): string | Socket {
  const { remoteAddress, remotePort, localAddress } = socket;
  return remoteAddress === undefined ? socket : `${remoteAddress} ${remotePort} ${localAddress}`;
}
