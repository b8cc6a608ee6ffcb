import { orAborted, type Source } from '../base/cancellation.ts';
import type { Connection } from './connection.ts';

/** Keeps the connections to one member for reuse. Each connection is lent to one user at a time. */
export class ConnectionPool {
  readonly #make: () => Connection;
  readonly #all: Connection[] = [];
  /** Last in, first out: the server is least likely to have closed the connection that was used last. */
  readonly #idle: Connection[] = [];

  constructor(make: () => Connection) {
    this.#make = make;
  }

  take(): Connection {
    const idle = this.#idle.pop();
    if (idle) return idle;
    const connection = this.#make();
    this.#all.push(connection);
    return connection;
  }

  giveBack(connection: Connection): void {
    this.#idle.push(connection);
  }

  async destroy(): Promise<void> {
    await Promise.all(this.#all.map((connection) => connection.transport.destroy()));
  }
}

/** Lends connections of a pool to requests of one kind: a limited number at a time, first come, first served. */
export class Lender {
  readonly #pool: ConnectionPool;
  readonly #limit: number;
  #lent = 0;
  readonly #waiting = new Set<(connection: Connection) => void>();

  constructor(pool: ConnectionPool, limit = Number.POSITIVE_INFINITY) {
    this.#pool = pool;
    this.#limit = limit;
  }

  /**
   * Lends a connection, or returns undefined at the limit. The caller must start an exchange on the connection at once. The connection
   * is given back when every exchange on it has ended.
   */
  lend(): Connection | undefined {
    if (this.#lent >= this.#limit) return undefined;
    this.#lent += 1;
    return this.#pool.take().lentBy(this);
  }

  /**
   * Waits until a connection is given back, then lends it.
   * @throws the reason of `ending` if `ending` aborts first
   */
  async wait(ending: Source): Promise<Connection> {
    let take: (connection: Connection) => void = () => {};
    const taken = new Promise<Connection>((resolve) => {
      take = resolve;
    });
    this.#waiting.add(take);
    try {
      return (await orAborted(taken, ending)).lentBy(this);
    } catch (error) {
      // A connection may have been handed to this waiter just before the abort.
      if (!this.#waiting.delete(take)) void taken.then((connection) => this.giveBack(connection));
      throw error;
    }
  }

  /** Called only with connections that this lender has lent. */
  giveBack(connection: Connection): void {
    const [next] = this.#waiting;
    if (next) {
      this.#waiting.delete(next);
      next(connection);
    } else {
      this.#lent -= 1;
      this.#pool.giveBack(connection);
    }
  }
}
