import { orAborted, type Source } from '../cancellation.ts';
import type { Connection } from './connection.ts';

/** A connection lent: given back once all that was begun on it is over. */
export class Loan {
  readonly connection: Connection;
  readonly #giveBack: (connection: Connection) => void;
  #underWay = 0;

  constructor(connection: Connection, giveBack: (connection: Connection) => void) {
    this.connection = connection;
    this.#giveBack = giveBack;
  }

  begins(): void {
    this.#underWay += 1;
  }

  readonly ends = (): void => {
    this.#underWay -= 1;
    if (this.#underWay === 0) this.#giveBack(this.connection);
  };
}

/** Connections to one member that are kept for whoever comes next, each lent to one user at a time. */
export class Connections {
  readonly #make: () => Connection;
  readonly #all: Connection[] = [];
  /** The last one used comes first: it is least likely to have been closed meanwhile. */
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
    await Promise.all(this.#all.map((connection) => connection.client.destroy()));
  }
}

/** Those of one kind who share the connections: so many at a time, who comes first is served first. */
export class Borrowers {
  readonly #connections: Connections;
  readonly #most: number;
  #lent = 0;
  readonly #waiting = new Set<(connection: Connection) => void>();

  constructor(connections: Connections, most = Number.POSITIVE_INFINITY) {
    this.#connections = connections;
    this.#most = most;
  }

  /** Lends a connection, which something has to be begun on at once; undefined where as many are lent as may be. */
  borrow(): Loan | undefined {
    if (this.#lent >= this.#most) return undefined;
    this.#lent += 1;
    return this.#lend(this.#connections.take());
  }

  /**
   * Waits for one to be given back.
   * @throws the reason of what ends the wait before
   */
  async wait(ending: Source): Promise<Loan> {
    let take: (connection: Connection) => void = () => {};
    const taken = new Promise<Connection>((resolve) => {
      take = resolve;
    });
    this.#waiting.add(take);
    try {
      return this.#lend(await orAborted(taken, ending));
    } catch (error) {
      // It may have been lent in that very moment.
      if (!this.#waiting.delete(take)) void taken.then((connection) => this.#giveBack(connection));
      throw error;
    }
  }

  #lend(connection: Connection): Loan {
    return new Loan(connection, (lent) => this.#giveBack(lent));
  }

  #giveBack(connection: Connection): void {
    const [next] = this.#waiting;
    if (next) {
      this.#waiting.delete(next);
      next(connection);
    } else {
      this.#lent -= 1;
      this.#connections.giveBack(connection);
    }
  }
}
