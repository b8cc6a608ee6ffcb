import type { Socket } from 'node:net';
import type { Client } from 'undici';
import { now } from '../time.ts';
import type { Trial } from './trial.ts';

/** Milliseconds after an answer within which a server that closes the connection does so because of the answer. */
const SOON = 1000;

/** One connection to a member. After a socket was closed, undici opens a new one for the next request. */
export class Connection {
  readonly client: Client;
  readonly #reuse: Trial;
  #socket: Socket | undefined;
  /** Whole answers on the present socket. */
  #answers = 0;
  /** When the last one came. */
  #answeredAt = 0;

  /**
   * @param reuse finds out whether the member keeps its connections open after an answer
   * @param make makes the client, and calls `opened` with each socket it makes
   */
  constructor(reuse: Trial, make: (opened: (socket: Socket) => void) => Client) {
    this.#reuse = reuse;
    this.client = make(this.#opened);
  }

  /** Whether the present socket has given an answer before: it may be closed while the next request is on its way. */
  get isUsed(): boolean {
    return this.#answers > 0;
  }

  /** Notes that a whole answer has come. */
  readonly answered = (): void => {
    this.#answers += 1;
    this.#answeredAt = now();
    if (this.#answers > 1) this.#reuse.succeeded();
  };

  /** Sends as one what is written in this turn. */
  writeTogether(): void {
    const socket = this.#socket;
    if (!socket) return;
    socket.cork();
    process.nextTick(() => socket.uncork());
  }

  readonly #opened = (socket: Socket): void => {
    this.#socket = socket;
    this.#answers = 0;
    // Neither is emitted where we close it, as after an answer that announces the end of the connection.
    socket.once('end', this.#onClosedByMember).once('error', this.#onClosedByMember);
  };

  readonly #onClosedByMember = (): void => {
    if (this.#answers === 1 && now() - this.#answeredAt < SOON) this.#reuse.failed();
  };
}
