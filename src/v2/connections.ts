import type { Client } from 'undici';
import { orAborted, type Source } from '../timing.ts';

/** A connection lent: given back once all that was begun on it is over. */
export class Loan {
  readonly client: Client;
  readonly #giveBack: (client: Client) => void;
  #underWay = 0;

  constructor(client: Client, giveBack: (client: Client) => void) {
    this.client = client;
    this.#giveBack = giveBack;
  }

  begins(): void {
    this.#underWay += 1;
  }

  readonly ends = (): void => {
    this.#underWay -= 1;
    if (this.#underWay === 0) this.#giveBack(this.client);
  };
}

/** Connections to one member that are kept for whoever comes next, each lent to one user at a time. */
export class Connections {
  readonly #make: () => Client;
  readonly #all: Client[] = [];
  /** The last one used comes first: it is least likely to have been closed meanwhile. */
  readonly #idle: Client[] = [];

  constructor(make: () => Client) {
    this.#make = make;
  }

  take(): Client {
    const idle = this.#idle.pop();
    if (idle) return idle;
    const client = this.#make();
    this.#all.push(client);
    return client;
  }

  giveBack(client: Client): void {
    this.#idle.push(client);
  }

  async destroy(): Promise<void> {
    await Promise.all(this.#all.map((client) => client.destroy()));
  }
}

/** Those of one kind who share the connections: so many at a time, who comes first is served first. */
export class Borrowers {
  readonly #connections: Connections;
  readonly #most: number;
  #lent = 0;
  readonly #waiting = new Set<(client: Client) => void>();

  constructor(connections: Connections, most: number) {
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
    let take: (client: Client) => void = () => {};
    const taken = new Promise<Client>((resolve) => {
      take = resolve;
    });
    this.#waiting.add(take);
    try {
      return this.#lend(await orAborted(taken, ending));
    } catch (error) {
      // It may have been lent in that very moment.
      if (!this.#waiting.delete(take)) void taken.then((client) => this.#giveBack(client));
      throw error;
    }
  }

  #lend(client: Client): Loan {
    return new Loan(client, (lent) => this.#giveBack(lent));
  }

  #giveBack(client: Client): void {
    const [next] = this.#waiting;
    if (next) {
      this.#waiting.delete(next);
      next(client);
    } else {
      this.#lent -= 1;
      this.#connections.giveBack(client);
    }
  }
}
