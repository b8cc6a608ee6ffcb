import type { ConnectionEnd } from '../network/end.ts';
import type { AnswerHead, AnswerPiece, RequestMessage } from '../network/message.ts';
import type { Network } from '../network/network.ts';

export interface HttpRequest {
  readonly method: string;
  readonly path: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string | undefined;
  /** Most milliseconds to connect, and between two pieces of the answer. Default: no limit. */
  readonly timeout?: number | undefined;
  /** Most milliseconds to connect, if not `timeout`. */
  readonly connectTimeout?: number;
}

export interface HttpResponse {
  readonly status: number;
  /** When the request was sent, by the clock of the process. */
  readonly sentAt: number;
  /** The body, as it arrives. The connection is closed when the caller ends the loop early. */
  readonly pieces: AsyncGenerator<Buffer>;
}

/** A request failed; `during` says how far it had come. */
export class HttpFailure extends Error {
  readonly during: 'connect' | 'head' | 'body';

  constructor(during: 'connect' | 'head' | 'body', cause: unknown) {
    super(`failed during ${during}: ${cause instanceof Error ? cause.message : cause}`, { cause });
    this.during = during;
  }
}

/** Most bytes of an answer that have arrived, and that nobody has read. */
const MOST = 2 ** 22;

/** Milliseconds after which Linux gives up a connection that nobody accepts. */
const SYSTEM_TIMEOUT = 127_000;

/** A client of HTTP/1.1 over a simulated network. Uses connections again. */
export class HttpConnections {
  readonly #network: Network;
  readonly #all = new Set<Wire>();
  readonly #idle = new Map<string, Wire[]>();
  #isClosed = false;

  constructor(network: Network) {
    this.#network = network;
  }

  /** Resolves when the head of the answer has arrived. @throws {HttpFailure} */
  async send(url: string, request: HttpRequest): Promise<HttpResponse> {
    const { method, path, headers = {}, body = '', timeout } = request;
    const { host } = new URL(url);
    const wire = await this.#wireTo(host, request.connectTimeout ?? timeout ?? SYSTEM_TIMEOUT).catch(
      failure('connect'),
    );
    const sentAt = performance.now();
    wire.send({ method, path, headers: Object.entries({ Host: host, ...headers }).flat(), body });
    wire.timeout = timeout;
    const { status } = await wire.head().catch((error: unknown) => {
      wire.close();
      return failure('head')(error);
    });
    return { status, sentAt, pieces: this.#body(host, wire) };
  }

  /** Closes all connections, and opens no more: what is sent fails. */
  close(): void {
    this.#isClosed = true;
    for (const wire of this.#all) wire.close();
  }

  async #wireTo(host: string, timeout: number): Promise<Wire> {
    const idle = this.#idle.get(host) ?? [];
    for (let wire = idle.pop(); wire; wire = idle.pop()) if (!wire.isClosed) return wire;
    if (this.#isClosed) throw new Error('the client was closed');
    const socket = await new Promise<ConnectionEnd>((resolve, reject) => {
      this.#network.connect(
        (found) => found(host),
        timeout,
        (error, connected) => (connected ? resolve(connected) : reject(error)),
      );
    });
    const wire = new Wire(socket);
    if (this.#isClosed) wire.close();
    this.#all.add(wire);
    socket.once('close', () => this.#all.delete(wire));
    return wire;
  }

  async *#body(host: string, wire: Wire): AsyncGenerator<Buffer> {
    let isComplete = false;
    try {
      yield* wire.body();
      isComplete = true;
    } catch (error) {
      failure('body')(error);
    } finally {
      if (isComplete) this.#idle.set(host, [...(this.#idle.get(host) ?? []), wire]);
      else wire.close();
    }
  }
}

/** The whole body of an answer. @throws {HttpFailure} */
export async function textOf({ pieces }: HttpResponse): Promise<string> {
  const all: Buffer[] = [];
  for await (const piece of pieces) all.push(piece);
  return Buffer.concat(all).toString();
}

const failure = (during: HttpFailure['during']) => (cause: unknown) => {
  throw cause instanceof HttpFailure ? cause : new HttpFailure(during, cause);
};

/** A connection whose answers are read piece by piece. */
class Wire {
  /** Most milliseconds between two pieces. */
  timeout: number | undefined;
  readonly #end: ConnectionEnd;
  readonly #arrived: AnswerPiece[] = [];
  #held = 0;
  #wake = (): void => {};

  constructor(end: ConnectionEnd) {
    this.#end = end;
    end.on('message', (piece: AnswerPiece) => {
      this.#arrived.push(piece);
      this.#held += piece.data?.length ?? 0;
      if (this.#held > MOST) end.destroy(new Error('too much of an answer'));
      this.#wake();
    });
    end.on('end', () => end.destroy());
    end.on('close', () => this.#wake());
  }

  get isClosed(): boolean {
    return this.#end.destroyed;
  }

  send(message: RequestMessage): void {
    this.#end.send(message);
  }

  close(): void {
    this.#end.destroy();
  }

  /** Waits for the head of an answer, and leaves its body. */
  async head(): Promise<AnswerHead> {
    const { head } = await this.#first();
    if (!head) throw new Error('not the head of an answer');
    return head;
  }

  async *body(): AsyncGenerator<Buffer> {
    for (let isLast = false; !isLast; ) {
      const piece = await this.#first();
      this.#arrived.shift();
      this.#held -= piece.data?.length ?? 0;
      if (piece.data) yield piece.data;
      isLast = piece.isLast;
    }
  }

  /** Returns the first piece that nobody has read. */
  async #first(): Promise<AnswerPiece> {
    for (;;) {
      const [first] = this.#arrived;
      if (first) return first;
      if (this.isClosed) throw this.#end.errored ?? new Error('the connection was closed');
      const { timeout } = this;
      const timer = timeout && setTimeout(() => this.#end.destroy(new Error('timed out')), timeout);
      await new Promise<void>((resolve) => {
        this.#wake = resolve;
      });
      clearTimeout(timer);
    }
  }
}
