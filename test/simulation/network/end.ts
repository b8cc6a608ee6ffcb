import { EventEmitter } from 'node:events';
import { bytesOf, type Message } from './message.ts';

/** What an end of a connection does to the other one. */
export interface Wire {
  /** This end sends messages together. */
  readonly onMessages: (messages: readonly Message[]) => void;
  /** This end sends nothing more. */
  readonly onEnd: () => void;
  /** This end has closed the connection, without sending the rest. */
  readonly onReset: () => void;
}

/**
 * One end of a connection in memory. Has what this package asks of a socket, and emits the events of one, but passes whole messages:
 * `message` in the place of `data`.
 */
export class ConnectionEnd extends EventEmitter {
  readonly remoteAddress: string;
  readonly remotePort: number;
  readonly localAddress = '127.0.0.1';
  bytesRead = 0;
  destroyed = false;
  closed = false;
  readableEnded = false;
  writableEnded = false;
  errored: Error | null = null;
  readonly #wire: Wire;
  #corked: Message[] | undefined;

  constructor([address, port]: readonly [string, number], wire: Wire) {
    super();
    this.remoteAddress = address;
    this.remotePort = port;
    this.#wire = wire;
    this.on('error', () => {}); // as a reset: whoever uses the connection has a listener of its own
  }

  get writable(): boolean {
    return !this.destroyed && !this.writableEnded;
  }

  send(message: Message): void {
    if (!this.writable) return;
    if (this.#corked) this.#corked.push(message);
    else this.#wire.onMessages([message]);
  }

  /** The other end has sent this. */
  deliver(messages: readonly Message[]): void {
    for (const message of messages) {
      if (this.destroyed) return;
      this.bytesRead += bytesOf(message);
      this.emit('message', message);
    }
  }

  /** The other end sends nothing more. */
  deliverEnd(): void {
    if (this.destroyed || this.readableEnded) return;
    this.readableEnded = true;
    this.emit('end');
    if (this.writableEnded) this.destroy();
  }

  deliverReset(): void {
    this.destroy(Object.assign(new Error('read ECONNRESET'), { code: 'ECONNRESET', syscall: 'read' }));
  }

  end(): this {
    if (!this.writable) return this;
    this.writableEnded = true;
    this.#wire.onEnd();
    return this.readableEnded ? this.destroy() : this;
  }

  destroy(error?: Error): this {
    if (this.destroyed) return this;
    this.destroyed = true;
    this.errored = error ?? null;
    if (error || !this.writableEnded) this.#wire.onReset();
    process.nextTick(() => {
      this.closed = true;
      if (error) this.emit('error', error);
      this.emit('close');
    });
    return this;
  }

  destroySoon(): void {
    this.end();
    this.destroy();
  }

  resetAndDestroy(): this {
    if (this.writableEnded && !this.destroyed) this.#wire.onReset();
    return this.destroy();
  }

  /** What is sent until {@link uncork} is sent together. */
  cork(): void {
    this.#corked ??= [];
  }

  uncork(): void {
    const messages = this.#corked ?? [];
    this.#corked = undefined;
    if (messages.length > 0 && this.writable) this.#wire.onMessages(messages);
  }

  ref(): this {
    return this;
  }

  unref(): this {
    return this;
  }

  setTimeout(): this {
    return this;
  }
}
