import type { ServerResponse } from 'node:http';
import type { Socket } from 'node:net';

/**
 * Maximum number of requests that a connection may send before they are answered. etcd leaves such requests unread. This
 * server has to read them: otherwise it would not notice that a client in a long poll hangs up. A pipelining client sends
 * some hundreds. One read of 64 KiB can contain 2,500 small requests.
 */
export const MAX_REQUESTS = 10_000;

/** Maximum number of bytes of unanswered requests on a connection: sixteen forms of the maximum size. */
export const MAX_BYTES = 16 * 2 ** 20;

/**
 * Number of unsent bytes of answers from which on a connection's next request waits. More than Node's own limit of 16 or 64 KiB,
 * at which it stops reading: a client that is slower than the server is then slowed down, and not cut off.
 */
const MAX_UNSENT = 2 ** 18;

/** The unanswered requests of one connection, in order. */
export class Pipeline {
  readonly #socket: Socket;
  /** For each unanswered request: the bytes read from the connection by the time the request arrived. */
  readonly #unanswered: number[] = [];
  /** Bytes of answers that the system has not taken. */
  #unsent = 0;
  #last = Promise.resolve();

  constructor(socket: Socket) {
    this.#socket = socket;
  }

  /** Whether the connection has sent too many requests or bytes after the request that is being answered. */
  get isFull(): boolean {
    const [, behind] = this.#unanswered;
    const bytes = behind === undefined ? 0 : this.#socket.bytesRead - behind;
    return this.#unanswered.length >= MAX_REQUESTS || bytes > MAX_BYTES;
  }

  /**
   * Calls `answer` after all earlier requests have been answered. Waits until the system has taken their answers if these are long: a
   * client that reads nothing cannot fill the memory over one connection. `answer` must not reject.
   */
  add(response: ServerResponse, answer: () => Promise<void>): void {
    this.#unanswered.push(this.#socket.bytesRead);
    this.#last = this.#last
      .then(answer)
      .then(() => this.#sent(response))
      .then(() => void this.#unanswered.shift());
  }

  /** Waits while too much is unsent: until the system has taken this answer, or the connection is closed. */
  async #sent(response: ServerResponse): Promise<void> {
    if (response.closed || this.#socket.destroyed) return;
    const bytes = response.writableLength;
    this.#unsent += bytes;
    const closed = new Promise<void>((resolve) => {
      response.once('close', () => {
        this.#unsent -= bytes;
        resolve();
      });
    });
    if (this.#unsent > MAX_UNSENT) await closed;
  }
}
