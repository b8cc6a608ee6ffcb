import { type IncomingMessage, Server, type ServerOptions, type ServerResponse } from 'node:http';
import type { Duplex } from 'node:stream';
import { ignore } from '../../cancellation.ts';
import { MOST_BYTES } from './pipeline.ts';

/**
 * A server that ignores offers to upgrade, as etcd does. Node's parser stops at such a request: without an `upgrade`
 * listener Node answers the request, but drops the bytes that came behind it. Here Node parses the request again, without
 * the offer, and then the bytes behind it.
 */
export class ServerWithoutUpgrades extends Server {
  /** The latest answer on each connection. */
  readonly #latest = new WeakMap<Duplex, ServerResponse>();
  /** Connections that wait for earlier answers. Node has given them up, so it would not close them. */
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
    // On a new connection Node writes the first answer at once, also before an earlier one has ended.
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
