import { ignore, orAborted, type Source } from '../base/cancellation.ts';
import type { Connection } from './connection.ts';

/** Keeps the connections to one member for reuse. Each connection is lent to one user at a time. */
export class ConnectionPool {
  readonly #make: () => Connection;
  readonly #all = new Set<Connection>();
  /** Connections that serve no further request, and are in use. */
  readonly #old = new WeakSet<Connection>();
  /** Last in, first out: the server is least likely to have closed the connection that was used last. */
  readonly #idle: Connection[] = [];

  constructor(make: () => Connection) {
    this.#make = make;
  }

  take(): Connection {
    const idle = this.#idle.pop();
    if (idle) return idle;
    const connection = this.#make();
    this.#all.add(connection);
    return connection;
  }

  giveBack(connection: Connection): void {
    if (this.#old.has(connection)) this.#close(connection);
    else this.#idle.push(connection);
  }

  /** Returns this connection, or another one if it may serve no further request. */
  current(connection: Connection): Connection {
    if (!this.#old.has(connection)) return connection;
    this.#close(connection);
    return this.take();
  }

  /** Replaces all connections: the idle ones at once, the others after the requests that are under way on them. */
  replace(): void {
    for (const connection of this.#idle.splice(0)) this.#close(connection);
    for (const connection of this.#all) this.#old.add(connection);
  }

  #close(connection: Connection): void {
    this.#all.delete(connection);
    connection.transport.destroy().catch(ignore);
  }

  async destroy(): Promise<void> {
    await Promise.all([...this.#all].map((connection) => connection.transport.destroy()));
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
      next(this.#pool.current(connection));
    } else {
      this.#lent -= 1;
      this.#pool.giveBack(connection);
    }
  }
}
