import type { Socket } from 'node:net';

/**
 * Requests a connection may send ahead of their answers. etcd leaves them unread; this server must read on, or it would not
 * notice that a client with a long poll hangs up. A client that pipelines sends some hundreds; the smallest requests fit
 * 2,500 into the 64 KiB that are read at once, before any is answered.
 */
export const MOST_REQUESTS = 10_000;

/** Bytes they may have: sixteen forms of the greatest size. */
export const MOST_BYTES = 16 * 2 ** 20;

/** The requests of one connection that are not answered yet, in their order. */
export class Pipeline {
  readonly #socket: Socket;
  /** Bytes read from the connection when each of them came. */
  readonly #unanswered: number[] = [];
  #last = Promise.resolve();

  constructor(socket: Socket) {
    this.#socket = socket;
  }

  /** Whether too much came behind the request that is being answered. */
  get isFull(): boolean {
    const [, behind] = this.#unanswered;
    const bytes = behind === undefined ? 0 : this.#socket.bytesRead - behind;
    return this.#unanswered.length >= MOST_REQUESTS || bytes > MOST_BYTES;
  }

  /** Calls `answer` once the requests before are answered. It must not reject. */
  add(answer: () => Promise<void>): void {
    this.#unanswered.push(this.#socket.bytesRead);
    this.#last = this.#last.then(answer).then(() => void this.#unanswered.shift());
  }
}
