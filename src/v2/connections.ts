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

/** A number of connections to one member, each lent to one user at a time; who comes first is served first. */
export class Connections {
  readonly #most: number;
  readonly #make: () => Client;
  readonly #all = new Set<Client>();
  /** The last one used comes first: it is least likely to have been closed meanwhile. */
  readonly #idle: Client[] = [];
  readonly #waiting = new Set<(client: Client) => void>();

  constructor(most: number, make: () => Client) {
    this.#most = most;
    this.#make = make;
  }

  /** Lends a connection, which something has to be begun on at once; undefined where all are lent. */
  take(): Loan | undefined {
    const client = this.#idle.pop() ?? this.#another();
    return client && this.#lend(client);
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

  async destroy(): Promise<void> {
    await Promise.all([...this.#all].map((client) => client.destroy()));
  }

  #another(): Client | undefined {
    if (this.#all.size >= this.#most) return undefined;
    const client = this.#make();
    this.#all.add(client);
    return client;
  }

  #lend(client: Client): Loan {
    return new Loan(client, (lent) => this.#giveBack(lent));
  }

  #giveBack(client: Client): void {
    const [next] = this.#waiting;
    if (!next) return void this.#idle.push(client);
    this.#waiting.delete(next);
    next(client);
  }
}
