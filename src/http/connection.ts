import type { Socket } from 'node:net';
import type { Dispatcher } from 'undici';
import { now } from '../base/time.ts';
import type { OptionalFeature } from './optional-feature.ts';

/** Milliseconds. A connection closed this soon after its first answer counts as a failure of keep-alive. */
const CLOSED_BY_ANSWER = 1000;

/** One connection to a member. When its socket is closed, undici opens a new socket for the next request. */
export class Connection {
  readonly transport: Dispatcher;
  readonly #keepAlive: OptionalFeature;
  #socket: Socket | undefined;
  /** Number of complete answers on the current socket. */
  #answers = 0;
  /** When the last complete answer came. */
  #answeredAt = 0;

  /**
   * @param keepAlive records whether the member keeps the connection open after an answer
   * @param make returns the transport, and calls `onSocket` with each socket that it opens
   */
  constructor(keepAlive: OptionalFeature, make: (onSocket: (socket: Socket) => void) => Dispatcher) {
    this.#keepAlive = keepAlive;
    this.transport = make(this.#onSocket);
  }

  /** Whether the current socket has carried an answer. The server may close such a socket while the next request is sent. */
  get isUsed(): boolean {
    return this.#answers > 0;
  }

  /**
   * Call this when a complete answer has come.
   * @param endsConnection whether the member closes the connection after this answer, though the request has not asked for that
   */
  onAnswer(endsConnection: boolean): void {
    this.#answers += 1;
    this.#answeredAt = now();
    if (this.#answers > 1) this.#keepAlive.succeeded();
    else if (endsConnection) this.#keepAlive.failed();
  }

  /** Sends everything that is written until the next tick as one packet. */
  writeTogether(): void {
    const socket = this.#socket;
    if (!socket) return;
    socket.cork();
    process.nextTick(() => socket.uncork());
  }

  readonly #onSocket = (socket: Socket): void => {
    this.#socket = socket;
    this.#answers = 0;
    socket.once('end', this.#onClosedByMember).once('error', this.#onClosedByMember);
  };

  readonly #onClosedByMember = (error?: NodeJS.ErrnoException): void => {
    // undici closes a socket with an error of its own, as after an answer with `connection: close`.
    if (error?.code?.startsWith('UND_ERR')) return;
    if (this.#answers === 1 && now() - this.#answeredAt < CLOSED_BY_ANSWER) this.#keepAlive.failed();
  };
}
