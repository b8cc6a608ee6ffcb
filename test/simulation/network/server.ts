import { EventEmitter } from 'node:events';
import { currentProcess } from '../virtual/process.ts';
import type { ConnectionEnd } from './end.ts';
import type { AnswerHead, RequestMessage } from './message.ts';
import { networkOf } from './network-of.ts';

type Headers = Readonly<Record<string, string | number>>;

/** An HTTP server on the network in memory. Emits `connection` and `request`, as Node's. */
export class SimulatedServer extends EventEmitter {
  readonly #process = currentProcess();
  #connections = 0;
  #address: { readonly address: string; readonly port: number } | undefined;

  constructor() {
    super();
    this.on('connection', (socket: ConnectionEnd) => this.#serve(socket));
  }

  listen(port: number, host: string): this {
    const process = this.#process;
    networkOf(process).listen(`${host}:${port}`, { process, accept: (socket) => this.accept(socket) });
    this.#address = { address: host, port };
    queueMicrotask(() => this.emit('listening'));
    return this;
  }

  accept(socket: ConnectionEnd): void {
    this.emit('connection', socket);
  }

  address() {
    return this.#address;
  }

  /** For who wraps it: a simulated server ends with its process. */
  closeAllConnections(): void {}

  getConnections(callback: (error: null, count: number) => void): void {
    callback(null, this.#connections);
  }

  #serve(socket: ConnectionEnd): void {
    this.#connections += 1;
    const open = new Set<SimulatedResponse>();
    // A client that closes its half still gets its answers.
    const endIfAnswered = (): void => {
      if (socket.readableEnded && open.size === 0) socket.end();
    };
    socket.on('message', (message: RequestMessage) => {
      const response = new SimulatedResponse(socket, message.method);
      open.add(response);
      response.once('close', () => {
        open.delete(response);
        endIfAnswered();
      });
      this.emit('request', new SimulatedRequest(socket, message), response);
    });
    socket.once('end', endIfAnswered);
    socket.once('close', () => {
      this.#connections -= 1;
      for (const response of open) response.hangUp();
    });
  }
}

/** Has what this package asks of Node's `IncomingMessage`. */
export class SimulatedRequest {
  readonly socket: ConnectionEnd;
  readonly method: string;
  readonly url: string;
  readonly headers: Record<string, string> = {};
  readonly rawHeaders: readonly string[];
  readonly httpVersion = '1.1';
  /** It arrives as a whole. */
  readonly complete = true;
  readonly #body: string;

  constructor(socket: ConnectionEnd, { method, path, headers, body }: RequestMessage) {
    this.socket = socket;
    this.method = method;
    this.url = path;
    this.rawHeaders = headers;
    for (let i = 0; i < headers.length; i += 2) this.headers[headers[i]?.toLowerCase() ?? ''] = headers[i + 1] ?? '';
    this.#body = body;
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<Buffer> {
    if (this.#body !== '') yield Buffer.from(this.#body);
  }

  resume(): void {}
}

/** Has what this package asks of Node's `ServerResponse`. */
export class SimulatedResponse extends EventEmitter {
  readonly socket: ConnectionEnd;
  statusCode = 200;
  headersSent = false;
  destroyed = false;
  closed = false;
  writableEnded = false;
  writableFinished = false;
  readonly #hasBody: boolean;
  #headers: Record<string, string> = {};
  /** Set until it is sent. */
  #head: AnswerHead | undefined;

  constructor(socket: ConnectionEnd, method: string) {
    super();
    this.socket = socket;
    this.#hasBody = method !== 'HEAD';
  }

  setHeader(name: string, value: string): void {
    this.#headers[name.toLowerCase()] = value;
  }

  writeHead(status: number, headers: Headers): this {
    for (const [name, value] of Object.entries(headers)) this.setHeader(name, String(value));
    this.statusCode = status;
    this.headersSent = true;
    this.#head = { status, headers: this.#headers };
    return this;
  }

  flushHeaders(): void {
    this.#send(undefined, false);
  }

  write(data: Buffer, callback: () => void): void {
    this.#send(data, false);
    process.nextTick(callback);
  }

  end(body = ''): void {
    this.#send(body === '' ? undefined : Buffer.from(body), true);
    this.writableEnded = true;
    process.nextTick(() => {
      if (this.closed) return;
      this.writableFinished = true;
      this.emit('finish');
      this.hangUp();
    });
  }

  destroy(): void {
    this.destroyed = true;
    this.socket.destroy();
  }

  /** Closes it, also before its end. */
  hangUp(): void {
    if (this.closed) return;
    this.destroyed = true;
    this.closed = true;
    this.emit('close');
  }

  #send(data: Buffer | undefined, isLast: boolean): void {
    this.socket.send({ head: this.#head, data: this.#hasBody ? data : undefined, isLast });
    this.#head = undefined;
  }
}
