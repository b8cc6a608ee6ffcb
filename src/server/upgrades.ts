import { type IncomingMessage, Server, type ServerOptions, type ServerResponse } from 'node:http';
import type { Duplex } from 'node:stream';
import { ignore } from '../timing.ts';
import { MOST_BYTES } from './pipeline.ts';

/**
 * A server that passes over offers to upgrade, as etcd does. Node's parser stops at such a request. Without an `upgrade`
 * listener Node answers the request, but drops what came with it; here it gets the request again, without the offer.
 */
export class ServerWithoutUpgrades extends Server {
  /** The latest answer on each connection. */
  readonly #latest = new WeakMap<Duplex, ServerResponse>();
  /** Connections that Node does not know any more, while earlier answers are under way. */
  readonly #held = new Set<Duplex>();

  constructor(options: ServerOptions) {
    super(options);
    this.on('request', (request, response) => this.#latest.set(request.socket, response));
    this.on('upgrade', (request, socket, rest) => void this.#passOver(request, socket, rest));
  }

  override closeAllConnections(): void {
    super.closeAllConnections();
    for (const socket of this.#held) socket.destroy();
  }

  async #passOver(request: IncomingMessage, socket: Duplex, rest: Buffer): Promise<void> {
    const chunks = [Buffer.from(withoutOffer(request), 'latin1'), rest];
    const latest = this.#latest.get(socket);
    // Node puts an answer on the connection at once, whatever is under way there.
    if (latest && !(latest.writableFinished && latest.socket === null)) await this.#hold(socket, latest, chunks);
    if (socket.destroyed) return;
    socket.unshift(Buffer.concat(chunks));
    this.emit('connection', socket);
    socket.resume();
  }

  /** Resolves when the answer has been sent, or the client is gone. */
  async #hold(socket: Duplex, answer: ServerResponse, chunks: Buffer[]): Promise<void> {
    let length = 0;
    const keep = (chunk: Buffer) => {
      chunks.push(chunk);
      length += chunk.length;
      if (length > MOST_BYTES) socket.destroy();
    };
    const end = () => socket.end();
    this.#held.add(socket);
    // Read on, or nobody would notice that the client hangs up.
    socket.on('data', keep).on('end', end).on('error', ignore);
    await new Promise<void>((resolve) => {
      answer.once('close', resolve);
      socket.once('close', resolve);
    });
    socket.off('data', keep).off('end', end).off('error', ignore);
    this.#held.delete(socket);
  }
}

const withoutOffer = ({ method, url, httpVersion, rawHeaders }: IncomingMessage): string => {
  const fields = rawHeaders.flatMap((name, i) =>
    i % 2 === 0 && name.toLowerCase() !== 'upgrade' ? [`${name}: ${rawHeaders[i + 1]}\r\n`] : [],
  );
  return `${method} ${url} HTTP/${httpVersion}\r\n${fields.join('')}\r\n`;
};
