import { between, sleep } from '../client/chance.ts';
import { type HttpConnections, HttpFailure, textOf } from './http.ts';

/** What a call of the Go client returns as its error. */
export class GoError extends Error {
  override name = 'GoError';
  /** Of gRPC. */
  readonly code: number;

  constructor(code: number, message: string, cause?: unknown) {
    super(message, { cause });
    this.code = code;
  }
}

export interface GoKv {
  readonly key: string;
  readonly create_revision: string;
  readonly mod_revision: string;
}

/** An answer of the gateway, as far as the Go client's models look at it. */
export interface GoAnswer {
  readonly header: { readonly revision: string };
  readonly succeeded?: boolean;
  readonly responses?: readonly { readonly response_range?: { readonly kvs?: readonly GoKv[] } }[];
  readonly kvs?: readonly GoKv[];
  /** Of a lease. */
  readonly ID?: string;
  readonly TTL?: string;
  readonly result?: GoAnswer;
  readonly events?: readonly { readonly type?: string; readonly kv: GoKv }[];
  readonly canceled?: boolean;
  readonly cancel_reason?: string;
}

/** An answer to a single request. */
export interface GoAnswered extends GoAnswer {
  /** When the request was sent that was answered, by the clock of the process. */
  readonly sentAt: number;
}

export interface GoCallOptions {
  /** Whether the client repeats it when a member is not available: ranges, grants and revocations. */
  readonly isRepeatable?: boolean;
  readonly needsLeader?: boolean;
}

/** What a session and a mutex ask of their client. */
export interface GoCalls {
  call(path: string, body: object, options?: GoCallOptions): Promise<GoAnswered>;
  /** The messages of a stream; it ends when the connection does. */
  stream(path: string, body: object): AsyncGenerator<GoAnswer>;
}

const UNAVAILABLE = 14;

/** Milliseconds in which a connection must be there: the client of Go uses only those that are. */
const CONNECT = 1000;

/** The limits of clientv3: tries of a repeatable call, and milliseconds between two rounds. */
const TRIES = 100;
const ROUND = 25;

/** The part of Go's clientv3 that locks use, over the JSON gateway: it takes the members in turn, and repeats only what it may. */
export class GoClient implements GoCalls {
  readonly #http: HttpConnections;
  readonly #endpoints: readonly string[];
  #turn: number;

  constructor(http: HttpConnections, endpoints: readonly string[]) {
    this.#http = http;
    this.#endpoints = endpoints;
    this.#turn = Math.floor(between(0, endpoints.length));
  }

  async call(path: string, body: object, { isRepeatable, needsLeader }: GoCallOptions = {}): Promise<GoAnswered> {
    const quorum = Math.floor(this.#endpoints.length / 2) + 1;
    for (let attempt = 1; ; attempt += 1) {
      try {
        const response = await this.#send(path, body, needsLeader);
        return { ...answerOf(await textOf(response).catch(unavailable)), sentAt: response.sentAt };
      } catch (error) {
        const mayRepeat = isRepeatable && error instanceof GoError && error.code === UNAVAILABLE;
        if (!mayRepeat || attempt === TRIES) throw error;
      }
      if (attempt % quorum === 0) await sleep(ROUND * between(0.9, 1.1));
    }
  }

  async *stream(path: string, body: object): AsyncGenerator<GoAnswer> {
    const { pieces } = await this.#send(path, body);
    let held = '';
    try {
      for await (const piece of pieces) {
        const lines = (held + piece).split('\n');
        held = lines.pop() ?? '';
        for (const line of lines) yield resultOf(answerOf(line));
      }
    } catch (error) {
      unavailable(error);
    }
  }

  /** Sends a request to the next member to which there is a connection. */
  async #send(path: string, body: object, needsLeader = false) {
    const headers = needsLeader ? { 'Grpc-Metadata-hasleader': 'true' } : {};
    const request = { method: 'POST', path, headers, body: JSON.stringify(body), connectTimeout: CONNECT };
    for (let left = this.#endpoints.length; ; left -= 1) {
      this.#turn += 1;
      try {
        return await this.#http.send(this.#endpoints[this.#turn % this.#endpoints.length] ?? '', request);
      } catch (error) {
        if (left <= 1 || !(error instanceof HttpFailure) || error.during !== 'connect') unavailable(error);
      }
    }
  }
}

/** @throws {GoError} that a member is not available, for a failure of its connection */
function unavailable(error: unknown): never {
  throw error instanceof HttpFailure ? new GoError(UNAVAILABLE, error.message, error) : error;
}

/** @throws {GoError} for an answer that is an error */
function answerOf(text: string): GoAnswer {
  const answer = JSON.parse(text) as GoAnswer & { code?: number; message?: string; error?: { grpc_code?: number } };
  const code = answer.error?.grpc_code ?? answer.code;
  if (code === undefined) return answer;
  throw new GoError(code, answer.message ?? JSON.stringify(answer.error));
}

export const resultOf = (answer: GoAnswer): GoAnswer => answer.result ?? answer;
