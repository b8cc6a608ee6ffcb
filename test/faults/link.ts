import { connect, type Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';

/** `requests` go from the client to the server, `answers` back. */
export type Direction = 'requests' | 'answers';

export interface LinkOptions {
  /** Directions that are lost from the start. If requests are lost, the link does not connect to the server. */
  readonly lost?: readonly Direction[];
  /** Milliseconds by which bytes that arrive now are delayed. */
  readonly delay?: () => number;
  /** Gets bytes that have arrived before they are forwarded; a call of `lose()` drops them. */
  readonly look?: (direction: Direction, bytes: Buffer) => void;
}

/**
 * The connection of one client and the one made for it to the server. A lost direction drops all bytes, and also the end
 * of the connection when its sender closes or dies: the receiver sees silence.
 */
export class Link {
  readonly #client: Socket;
  readonly #server: Socket | undefined;
  readonly #lost: Set<Direction>;
  readonly #delay: () => number;

  constructor(client: Socket, target: string, { lost = [], delay = () => 0, look = () => {} }: LinkOptions = {}) {
    this.#client = client;
    this.#lost = new Set(lost);
    this.#delay = delay;
    client.setNoDelay(true);
    client.on('data', (bytes: Buffer) => look('requests', bytes));
    client.on('error', () => {});
    client.on('close', () => this.#server?.destroy());
    // A closed client and a half-closed one look alike here: a broken link treats both as closed.
    client.on('end', () => {
      if (this.#lost.size > 0) this.destroy();
    });
    if (this.#lost.has('requests')) return;
    const { hostname, port } = new URL(target);
    const server = connect({ host: hostname, port: Number(port), allowHalfOpen: true, noDelay: true });
    this.#server = server;
    server.on('error', () => {
      if (!this.#lost.has('answers')) this.reset();
    });
    // The client may be paused until this socket drains, which it never will.
    server.on('close', () => client.resume());
    server.on('data', (bytes: Buffer) => look('answers', bytes));
    this.#pass('requests', client, server);
    this.#pass('answers', server, client);
  }

  get lost(): ReadonlySet<Direction> {
    return this.#lost;
  }

  lose(...directions: readonly Direction[]): void {
    for (const direction of directions) this.#lost.add(direction);
    // A side may be paused until the other one reads, which a lost direction never does.
    this.#client.resume();
    this.#server?.resume();
  }

  /** Resets the connection of the client and closes the one to the server. */
  reset(): void {
    this.#client.resetAndDestroy();
    this.#server?.destroy();
  }

  destroy(): void {
    this.#client.destroy();
    this.#server?.destroy();
  }

  /** Resolves once neither side has a socket any more. */
  async closed(): Promise<void> {
    await Promise.all([this.#client, this.#server].map((socket) => socket && untilClosed(socket)));
  }

  #pass(direction: Direction, from: Socket, to: Socket): void {
    let turn = Promise.resolve();
    const inTurn = (act: () => void) => {
      const delay = this.#delay();
      const due = delay > 0 ? sleep(delay) : undefined;
      turn = turn
        .then(() => due)
        .then(() => {
          if (!this.#lost.has(direction) && to.writable) act();
        });
    };
    from.on('data', (bytes: Buffer) => {
      inTurn(() => {
        if (!to.write(bytes)) from.pause();
      });
    });
    to.on('drain', () => from.resume());
    from.on('end', () => inTurn(() => to.end()));
  }
}

const untilClosed = (socket: Socket): Promise<void> =>
  new Promise((resolve) => {
    if (socket.closed) resolve();
    else socket.once('close', () => resolve());
  });
