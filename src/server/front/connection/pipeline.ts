import { once } from 'node:events';
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { Scope } from '../../../base/cancellation.ts';
import { type Budget, Share } from '../../budget.ts';
import { Unsent } from './unsent.ts';

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

/** A request that will be answered. */
export interface Received {
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  /** Memory of the request. Returned when its work has ended, which may be after the end of the connection. */
  readonly share: Share;
}

/** The unanswered requests of one connection, in order. */
export class Pipeline {
  readonly unsent: Unsent;
  /** Aborts when the client has sent something that is not a request. */
  readonly broken = new Scope();
  readonly #socket: Socket;
  readonly #share: Share;
  /** For each unanswered request: the bytes read from the connection by the time the request arrived. */
  readonly #unanswered: number[] = [];
  #latest: Received | undefined;
  #isEnding = false;
  #last = Promise.resolve();

  /** @param patience milliseconds after which a client that takes nothing of its answers is cut off */
  constructor(socket: Socket, budget: Budget, patience: number) {
    this.#socket = socket;
    this.#share = new Share(budget);
    this.unsent = new Unsent(socket, this.newShare(), patience);
  }

  /** Whether a request has not been answered. */
  get isBusy(): boolean {
    return this.#unanswered.length > 0;
  }

  /** Whether the connection has sent too many requests or bytes after the request that is being answered. */
  get isFull(): boolean {
    const [, behind] = this.#unanswered;
    const bytes = behind === undefined ? 0 : this.#socket.bytesRead - behind;
    return this.#unanswered.length >= MAX_REQUESTS || bytes > MAX_BYTES;
  }

  /** Returns a share of the connection's memory. */
  newShare(): Share {
    return new Share(this.#share);
  }

  /**
   * Calls `answer` after all earlier requests have been answered, unless one of them ends the connection. Waits until the system has
   * taken their answers if these are long. `answer` must not reject.
   */
  add(received: Received, answer: () => Promise<void>): void {
    this.#unanswered.push(this.#socket.bytesRead);
    this.#latest = received;
    this.#last = this.#last
      .then(() => (this.#isEnding ? undefined : answer()))
      .then(() => this.unsent.atMost(MAX_UNSENT))
      .then(() => {
        received.share.end();
        this.#unanswered.shift();
      });
  }

  /** Closes the connection after this answer. Later requests are not answered. */
  endAfter(response: ServerResponse): void {
    this.#isEnding = true;
    response.once('finish', () => this.#socket.destroySoon());
  }

  /**
   * Closes the connection after the answers to all requests, because what follows them is not a request.
   * @param refusal an answer as it is sent. Not sent behind the answer to a request whose body is invalid
   */
  break(error: Error, refusal: string): void {
    if (this.broken.aborted) return;
    this.broken.abort(error);
    void this.#last.then(async () => {
      const { request, response } = this.#latest ?? {};
      if (this.#isEnding || this.#socket.destroyed) return;
      if (response && !response.closed) await once(response, 'close');
      if (!request || request.complete) this.#socket.write(refusal, 'latin1');
      this.#socket.destroySoon();
    });
  }
}
