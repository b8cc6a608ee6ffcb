import type { Client } from 'undici';
import { orAborted } from '../timing.ts';

/** The connection is in use until this has settled, too, whatever becomes of the result. */
export type BusyFor = (promise: Promise<unknown>) => void;

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

  /**
   * Lends a connection until the work, and what it asks to be waited for, is over; waits for one where all are lent.
   * @throws the signal's reason when it aborts before
   */
  async use<T>(signal: AbortSignal, work: (client: Client, busyFor: BusyFor) => Promise<T>): Promise<T> {
    const client = this.#take() ?? (await this.#wait(signal));
    const busy: Promise<unknown>[] = [];
    const result = work(client, (promise) => busy.push(promise));
    void Promise.allSettled([result, ...busy]).then(() => this.#giveBack(client));
    return result;
  }

  async destroy(): Promise<void> {
    await Promise.all([...this.#all].map((client) => client.destroy()));
  }

  #take(): Client | undefined {
    const idle = this.#idle.pop();
    if (idle || this.#all.size >= this.#most) return idle;
    const client = this.#make();
    this.#all.add(client);
    return client;
  }

  async #wait(signal: AbortSignal): Promise<Client> {
    let take: (client: Client) => void = () => {};
    const taken = new Promise<Client>((resolve) => {
      take = resolve;
    });
    this.#waiting.add(take);
    try {
      return await orAborted(taken, signal);
    } catch (error) {
      // It may have been lent in that very moment.
      if (!this.#waiting.delete(take)) void taken.then((client) => this.#giveBack(client));
      throw error;
    }
  }

  #giveBack(client: Client): void {
    const [next] = this.#waiting;
    if (!next) return void this.#idle.push(client);
    this.#waiting.delete(next);
    next(client);
  }
}
