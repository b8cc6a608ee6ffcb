import { Dispatcher, errors } from 'undici';
import type { Connector } from '../../../src/http/transport.ts';
import type { ConnectionEnd } from './end.ts';
import type { AnswerPiece } from './message.ts';
import type { Network } from './network.ts';

/** Milliseconds after which undici closes a connection that is not in use. */
const IDLE = 4000;

type Handler = Dispatcher.DispatchHandler;

/** A request, until its answer is complete. */
class Sending implements Dispatcher.DispatchController {
  readonly options: Dispatcher.DispatchOptions;
  readonly handler: Handler;
  readonly paused = false;
  aborted = false;
  isComplete = false;
  reason: Error | null = null;
  readonly #onAbort: () => void;

  constructor(options: Dispatcher.DispatchOptions, handler: Handler, onAbort: () => void) {
    this.options = options;
    this.handler = handler;
    this.#onAbort = onAbort;
  }

  get isIdempotent(): boolean {
    return this.options.method === 'GET' || this.options.method === 'HEAD';
  }

  abort(reason: Error): void {
    if (this.aborted || this.isComplete) return;
    this.fail(reason);
    this.#onAbort();
  }

  fail(reason: Error): void {
    if (this.aborted || this.isComplete) return;
    this.aborted = true;
    this.reason = reason;
    this.handler.onResponseError?.(this, reason);
  }

  pause(): void {}

  resume(): void {}
}

/**
 * Sends requests over one connection in memory at a time, and does to them what undici's `Client` does: it pipelines reads, fails the first
 * request of a connection that is closed, and sends those behind it again.
 */
export class SimulatedTransport extends Dispatcher {
  readonly #network: Network;
  readonly #host: string;
  readonly #connect: Connector;
  readonly #pipelining: number;
  /** Those that were sent come first. */
  #queue: Sending[] = [];
  #sent = 0;
  #socket: ConnectionEnd | undefined;
  #isConnecting = false;
  /** Whether the connection ends after the answers to what was sent. */
  #resets = false;
  #isResuming = false;
  #isDestroyed = false;
  #idle: NodeJS.Timeout | undefined;

  constructor(network: Network, url: string, connect: Connector, pipelining: number) {
    super();
    this.#network = network;
    this.#host = new URL(url).host;
    this.#connect = connect;
    this.#pipelining = pipelining;
  }

  override dispatch(options: Dispatcher.DispatchOptions, handler: Handler): boolean {
    this.#network.noteRequest();
    const sending = new Sending(options, handler, () =>
      this.#socket?.destroy(new errors.InformationalError('aborted')),
    );
    if (this.#isDestroyed) sending.fail(new errors.ClientDestroyedError());
    else {
      this.#queue.push(sending);
      this.#resume();
    }
    return true;
  }

  override async destroy(): Promise<void> {
    this.#isDestroyed = true;
    clearTimeout(this.#idle);
    const error = new errors.ClientDestroyedError();
    for (const sending of this.#queue.splice(this.#sent)) sending.fail(error);
    const socket = this.#socket;
    if (!socket || socket.closed) return;
    const closed = new Promise((resolve) => socket.once('close', resolve));
    socket.destroy(error);
    await closed;
  }

  #resume(): void {
    if (this.#isResuming) return;
    this.#isResuming = true;
    while (this.#sendNext()) {}
    this.#isResuming = false;
    clearTimeout(this.#idle);
    const socket = this.#socket;
    if (!socket || this.#queue.length > 0) return;
    this.#idle = setTimeout(() => socket.destroy(new errors.InformationalError('socket idle timeout')), IDLE);
  }

  /** Returns whether to look for another one. */
  #sendNext(): boolean {
    const next = this.#queue[this.#sent];
    if (!next || this.#isDestroyed || this.#isConnecting || this.#sent >= this.#pipelining) return false;
    const socket = this.#socket;
    if (!socket) {
      this.#open();
      return false;
    }
    if (socket.destroyed || this.#resets || (this.#sent > 0 && !next.isIdempotent)) return false;
    if (!next.aborted) next.handler.onRequestStart?.(next, {});
    if (next.aborted) {
      this.#queue.splice(this.#sent, 1);
      return true;
    }
    const { method, path, headers, body, reset } = next.options;
    this.#resets = reset === true || method === 'HEAD';
    const all = ['host', this.#host, ...(headers as readonly string[])];
    socket.send({ method, path, headers: all, body: typeof body === 'string' ? body : '' });
    this.#sent += 1;
    return true;
  }

  #open(): void {
    this.#isConnecting = true;
    const [hostname = '', port = ''] = this.#host.split(':');
    const options = { hostname, port, host: this.#host, protocol: 'http:' };
    this.#connect(options, (error, connected) => {
      const socket = connected as unknown as ConnectionEnd;
      this.#isConnecting = false;
      if (error) {
        for (const sending of this.#queue.splice(0)) sending.fail(error);
        return this.#resume();
      }
      if (this.#isDestroyed) return void socket.destroy(new errors.ClientDestroyedError());
      this.#socket = socket;
      this.#resets = false;
      socket.on('message', (piece: AnswerPiece) => this.#receive(socket, piece));
      socket.once('end', () => socket.destroy(new errors.SocketError('other side closed')));
      socket.once('close', () => this.#onClose(socket.errored ?? new errors.SocketError('closed')));
      this.#resume();
    });
  }

  #receive(socket: ConnectionEnd, { head, data, isLast }: AnswerPiece): void {
    const sending = this.#queue[0];
    if (!sending || this.#sent === 0) return void socket.destroy(new errors.SocketError('an answer to no request'));
    const { handler } = sending;
    if (head) {
      if (head.headers['connection'] === 'close') this.#resets = true;
      handler.onResponseStart?.(sending, head.status, head.headers, '');
    }
    if (data && !socket.destroyed) handler.onResponseData?.(sending, data);
    if (!isLast || socket.destroyed) return;
    sending.isComplete = true;
    this.#queue.shift();
    this.#sent -= 1;
    handler.onResponseEnd?.(sending, {});
    if (this.#resets && this.#sent === 0) socket.destroy(new errors.InformationalError('reset'));
    else this.#resume();
  }

  #onClose(error: Error): void {
    this.#socket = undefined;
    clearTimeout(this.#idle);
    if (this.#isDestroyed) for (const sending of this.#queue.splice(0)) sending.fail(error);
    else if (this.#sent > 0 && !(error instanceof errors.InformationalError)) this.#queue.shift()?.fail(error);
    this.#sent = 0;
    this.#resume();
  }
}
