import { getHeapStatistics } from 'node:v8';

/** Memory that bytes from a connection cost besides their number, for each piece in which they arrive. */
export const PIECE_COST = 512;

/**
 * Memory that the clients of servers may use together, in bytes: for requests in progress, unread answers and open polls. It is
 * counted, not measured.
 *
 * One connection may have as much as a quarter of what is free. So while clients that do not read use up the memory, long answers
 * are refused first, and the short ones that locks need last.
 */
export class Budget {
  readonly limit: number;
  #used = 0;

  constructor(limit: number) {
    this.limit = limit;
  }

  get used(): number {
    return this.#used;
  }

  /**
   * Takes some bytes. Returns false, and takes nothing, if there is not enough room.
   * @param held bytes that the same connection has taken
   */
  take(bytes: number, held: number): boolean {
    if (held + bytes > (this.limit - this.#used) / 4) return false;
    this.#used += bytes;
    return true;
  }

  /** Returns bytes that {@link take} has taken. */
  give(bytes: number): void {
    this.#used -= bytes;
  }
}

/** What one connection, or one request, has taken of a budget. */
export class Share {
  readonly #from: Budget | Share;
  #used = 0;
  #isEnded = false;

  constructor(from: Budget | Share) {
    this.#from = from;
  }

  /** Takes some bytes, as {@link Budget.take} does. Takes nothing after {@link Share.end}, and returns true. */
  take(bytes: number): boolean {
    if (this.#isEnded) return true;
    if (!this.#from.take(bytes, this.#used)) return false;
    this.#used += bytes;
    return true;
  }

  give(bytes: number): void {
    if (this.#isEnded) return;
    this.#used -= bytes;
    this.#from.give(bytes);
  }

  /** Returns all that was taken. */
  end(): void {
    this.give(this.#used);
    this.#isEnded = true;
  }
}

/** The budget of all servers in this process: 10,000 open polls, or the unread answers to some hundred long listings. */
export const processBudget = new Budget(Math.min(512 * 2 ** 20, getHeapStatistics().heap_size_limit / 2));
