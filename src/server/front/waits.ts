import { addAbortListener, pause, removeAbortListener } from '../../base/cancellation.ts';
import { OutOfMemory, Overloaded } from '../served-keys.ts';
import type { Work } from './connection/work.ts';

/** Milliseconds before a poll beyond a limit, of polls, of memory or of users, is refused. */
const REFUSE_AFTER = 1000;

/** Memory that a poll or a stream costs in this process: a connection of its client, and one to etcd. */
const COST = 48 * 1024;

/** Abort reason of requests with `wait=true` when the server stops. */
const STOPPING = new Error('the server is stopping');

/** Abort reason of a request with `wait=true` whose client closes its half of the connection. */
export const CLOSED_HALF = new Error('the client has closed its half of the connection');

/** The open requests with `wait=true`, long polls and streams, and those that are about to be refused. */
export class Waits {
  readonly #limit: number;
  readonly #open = new Set<AbortController>();
  readonly #refused = new Set<AbortController>();
  #isStopping = false;

  constructor(limit: number) {
    this.#limit = limit;
  }

  /** Number of open requests. */
  get size(): number {
    return this.#open.size;
  }

  /** Ends all requests, now and later. */
  end(): void {
    this.#isStopping = true;
    for (const hangUp of [...this.#open, ...this.#refused]) hangUp.abort(STOPPING);
  }

  /**
   * Runs a request with `wait=true`. Its `hangUp` aborts when the server stops, and when its client closes its half of the connection or
   * sends something that is not a request.
   * @param run calls its argument with what is to be done once the request is open
   * @throws {Overloaded} after a second, if a limit is reached
   */
  async serve(work: Work, run: (open: (wait: () => Promise<void>) => Promise<void>) => Promise<void>): Promise<void> {
    const { hangUp, request, response, pipeline } = work;
    const { socket } = request;
    const closeHalf = (): void => {
      pipeline.endAfter(response);
      hangUp.abort(CLOSED_HALF);
    };
    const abort = (reason: unknown): void => hangUp.abort(reason);
    socket.once('end', closeHalf);
    addAbortListener(pipeline.broken, abort);
    if (this.#isStopping) abort(STOPPING);
    if (socket.readableEnded) closeHalf();
    try {
      hangUp.signal.throwIfAborted();
      await run((wait) => this.#count(work, wait));
    } catch (error) {
      if (!(error instanceof Overloaded)) throw error;
      // python-etcd repeats a refused poll at once.
      this.#refused.add(hangUp);
      await pause(REFUSE_AFTER, hangUp.signal);
      this.#refused.delete(hangUp);
      hangUp.signal.throwIfAborted();
      throw error;
    } finally {
      socket.off('end', closeHalf);
      removeAbortListener(pipeline.broken, abort);
    }
  }

  /** Runs `wait` as an open request, if the limits allow one more. */
  async #count({ hangUp, share }: Work, wait: () => Promise<void>): Promise<void> {
    if (this.#open.size >= this.#limit)
      throw new Overloaded(`limit of ${this.#limit} open long polls reached: retry later, or use another server`);
    if (!share.take(COST)) throw new OutOfMemory();
    this.#open.add(hangUp);
    try {
      await wait();
    } finally {
      this.#open.delete(hangUp);
      share.give(COST); // an answer with 503 needs room
    }
  }
}
