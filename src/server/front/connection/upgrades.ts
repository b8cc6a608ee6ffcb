import type { Server as HttpServer, IncomingMessage, ServerResponse } from 'node:http';
import { Server as HttpsServer } from 'node:https';
import type { Duplex } from 'node:stream';
import { ignore } from '../../../base/cancellation.ts';
import { type Budget, PIECE_COST, Share } from '../../budget.ts';
import { MAX_BYTES } from './pipeline.ts';

/** A server for HTTP or HTTPS. */
export type WebServer = HttpServer | HttpsServer;

/**
 * Makes a server ignore the `Upgrade` header, as etcd does. Node's parser stops after a request with this header. Without an
 * `upgrade` listener, Node answers the request but drops the bytes behind it. The listener added here lets Node parse the
 * request again without the header, and then the bytes behind it.
 * @param budget memory for what waits for an earlier response
 */
export function ignoreUpgrades(server: WebServer, budget: Budget): void {
  const upgrades = new Upgrades(server, budget);
  const closeAll = server.closeAllConnections.bind(server);
  server.closeAllConnections = () => {
    closeAll();
    upgrades.closeHeld();
  };
}

class Upgrades {
  /** Name of the event that passes a new connection to the server. */
  readonly #connection: 'connection' | 'secureConnection';
  readonly #server: WebServer;
  readonly #budget: Budget;
  /** The latest response on each connection. */
  readonly #latest = new WeakMap<Duplex, ServerResponse>();
  /** Connections that wait for an earlier response. Node no longer tracks them, so it would not close them. */
  readonly #held = new Set<Duplex>();

  constructor(server: WebServer, budget: Budget) {
    this.#server = server;
    this.#budget = budget;
    this.#connection = server instanceof HttpsServer ? 'secureConnection' : 'connection';
    server.on('request', (request, response) => this.#latest.set(request.socket, response));
    server.on('upgrade', (request, socket, rest) => void this.#parseAgain(request, socket, rest));
  }

  closeHeld(): void {
    for (const socket of this.#held) socket.destroy();
  }

  async #parseAgain(request: IncomingMessage, socket: Duplex, rest: Buffer): Promise<void> {
    const chunks = [Buffer.from(withoutOffer(request), 'latin1'), rest];
    const latest = this.#latest.get(socket);
    // To Node, the connection is new: it would write the next response before an earlier one has ended.
    if (latest && !(latest.writableFinished && latest.socket === null)) await this.#hold(socket, latest, chunks);
    if (socket.destroyed) return;
    socket.unshift(Buffer.concat(chunks));
    this.#server.emit(this.#connection, socket);
    socket.resume();
  }

  /** Adds what arrives to `chunks` until the response has been sent or the client has gone. Closes the connection beyond a limit. */
  async #hold(socket: Duplex, response: ServerResponse, chunks: Buffer[]): Promise<void> {
    const share = new Share(this.#budget);
    let length = 0;
    const count = (chunk: Buffer) => {
      length += chunk.length;
      if (length > MAX_BYTES || !share.take(chunk.length + PIECE_COST)) socket.destroy();
    };
    const keep = (chunk: Buffer) => {
      chunks.push(chunk);
      count(chunk);
    };
    chunks.forEach(count);
    const end = () => socket.end();
    this.#held.add(socket);
    // Keep reading: otherwise Node does not report that the client has hung up.
    socket.on('data', keep).on('end', end).on('error', ignore);
    await new Promise<void>((resolve) => {
      response.once('close', resolve);
      socket.once('close', resolve);
    });
    socket.off('data', keep).off('end', end).off('error', ignore);
    this.#held.delete(socket);
    share.end();
  }
}

/** Returns the request line and the headers of a request, without `Upgrade`. */
const withoutOffer = ({ method, url, httpVersion, rawHeaders }: IncomingMessage): string => {
  const fields = rawHeaders.flatMap((name, i) =>
    i % 2 === 0 && name.toLowerCase() !== 'upgrade' ? [`${name}: ${rawHeaders[i + 1]}\r\n`] : [],
  );
  return `${method} ${url} HTTP/${httpVersion}\r\n${fields.join('')}\r\n`;
};
