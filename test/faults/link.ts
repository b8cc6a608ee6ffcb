import { connect, type Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';

/** `requests` go from the client to the server, `answers` back. */
export type Direction = 'requests' | 'answers';

export interface LinkOptions {
  /** Directions that carry nothing from the start. Without requests the server is not even dialled. */
  readonly lost?: readonly Direction[];
  /** Milliseconds that what comes now takes to the other side. */
  readonly delay?: () => number;
  /** Looks at what has come, before it goes on; may lose it by `lose`. */
  readonly look?: (direction: Direction, bytes: Buffer) => void;
}

/**
 * One client's connection and the one made for it to the server. Where a direction is lost its bytes vanish for good,
 * and so does the news that its sender has closed or died: the receiver sees silence.
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
    // A client that has closed and one that only says no more look alike here: a broken link takes it for gone.
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
    // What waited for it to read more waits no longer.
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
    // What is lost waits for nobody to read it.
    this.#client.resume();
    this.#server?.resume();
  }

  /** The client sees a reset. */
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
