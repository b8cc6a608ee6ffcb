import type { Socket } from 'node:net';
import type { Share } from '../../budget.ts';
import { cutOff } from './cut-off.ts';

/**
 * Maximum number of unsent bytes of a stream whose client is slow; further events stay in the store. etcd writes to the system's send
 * buffer, which Linux lets grow to this size.
 */
export const SEND_BUFFER = 4 * 2 ** 20;

/** The answers of one connection that the system has not taken: its client does not read them, or reads them slowly. */
export class Unsent {
  readonly #socket: Socket;
  readonly #share: Share;
  /** Milliseconds after which a client that takes nothing is cut off. */
  readonly #patience: number;
  #bytes = 0;
  #stalled: NodeJS.Timeout | undefined;
  #waiting: (() => void)[] = [];

  /** @param share memory for these answers only; all returned when the connection is closed */
  constructor(socket: Socket, share: Share, patience: number) {
    this.#socket = socket;
    this.#share = share;
    this.#patience = patience;
    socket.once('close', () => {
      this.taken(this.#bytes);
      share.end();
    });
  }

  get bytes(): number {
    return this.#bytes;
  }

  /** Adds bytes of an answer. Returns false, and adds nothing, if the budget has no room for them. */
  add(bytes: number): boolean {
    if (!this.#share.take(bytes)) return false;
    this.#bytes += bytes;
    this.#stalled ??= setTimeout(() => cutOff(this.#socket), this.#patience).unref();
    return true;
  }

  /** Removes bytes that the system has taken. 0 if it has taken a part of a text: the client reads. */
  taken(bytes: number): void {
    this.#share.give(bytes);
    this.#bytes -= bytes;
    this.#stalled?.refresh();
    if (this.#bytes <= 0 || this.#socket.closed) {
      clearTimeout(this.#stalled);
      this.#stalled = undefined;
    }
    for (const wake of this.#waiting.splice(0)) wake();
  }

  /** Resolves when at most `limit` bytes are unsent, or the connection is closed. */
  async atMost(limit: number): Promise<void> {
    while (this.#bytes > limit && !this.#socket.closed)
      await new Promise<void>((resolve) => {
        this.#waiting.push(resolve);
      });
  }
}
