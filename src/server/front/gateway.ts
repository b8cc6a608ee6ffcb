import type { IncomingHttpHeaders, ServerResponse } from 'node:http';
import { addAbortListener } from '../../base/cancellation.ts';
import type { WireReply } from '../../v2/wire.ts';
import type { Share } from '../budget.ts';
import { OutOfMemory } from '../served-keys.ts';
import type { Limit } from './body.ts';
import { Outgoing } from './connection/outgoing.ts';
import { SEND_BUFFER, type Unsent } from './connection/unsent.ts';
import { CLOSED_HALF } from './waits.ts';

/** A request for the gateway. */
export interface GatewayRequest {
  readonly method: string;
  readonly path: string;
  readonly headers: IncomingHttpHeaders;
  /** One byte in each code unit. */
  readonly body: Promise<string>;
}

/** An API that a front serves beside v2's keys: etcd v3's, as JSON. */
export interface Gateway {
  readonly bodyLimit: Limit;
  /** Prefix of the paths. Without anything behind it, it is redirected to the same path with a slash. */
  readonly root: string;
  /** Whether the gateway answers requests for this path. */
  serves(path: string): boolean;
  answer(request: GatewayRequest): Promise<SingleAnswer | Stream>;
  /** Returns the answer to a request that a limit of this server refuses. */
  overloaded(why: string): WireReply;
}

/** The answer to a call. */
export interface SingleAnswer {
  /** undefined: it is too long for every client. */
  readonly reply: WireReply | undefined;
  /** Whether the call may have changed something. It is then not refused because of its answer. */
  readonly isWrite: boolean;
}

/** An answer that lasts until the client hangs up. */
export interface Stream {
  readonly headers: Readonly<Record<string, string>>;
  /** The line behind the others for a client that has closed its half of the connection, and still reads. */
  readonly lastLine: string;
  /** Begins. Returns what ends it. */
  readonly open: (output: StreamOutput) => () => void;
}

/** Where a stream sends its lines. */
export interface StreamOutput {
  /** Sends a line. Does nothing after the end of the stream. */
  send(line: string): void;
  /** Whether the client has taken most of the lines. While it has not, a stream should send no more. */
  readonly isReady: boolean;
  /** Resolves when the client has taken most of the lines, or has gone. */
  ready(): Promise<void>;
  /** Ends the stream: cuts off its client, unless nothing has been sent. The client then gets an error. */
  fail(reason: unknown): void;
  /** Takes memory for as long as the stream lasts. Returns false, and takes nothing, if the budget has no room for it. */
  take(bytes: number): boolean;
  /** Returns memory before the end of the stream. */
  give(bytes: number): void;
}

export interface StreamContext {
  /** Aborts when the client hangs up, and when the server ends the stream. */
  readonly hangUp: AbortController;
  readonly unsent: Unsent;
  readonly share: Share;
}

/**
 * Sends a stream until its client hangs up. Rejects with the reason; resolves if the client has only closed its half of the connection.
 * @throws {OutOfMemory} if the budget has no room for a line
 */
export async function serveStream(
  { headers, lastLine, open }: Stream,
  response: ServerResponse,
  { hangUp, unsent, share }: StreamContext,
): Promise<void> {
  const outgoing = new Outgoing(response, unsent);
  /** Ends the stream before its first line, so that the client gets an error as its answer. */
  let refuse = (_reason: unknown): void => {};
  const ended = new Promise<never>((_, reject) => {
    refuse = reject;
    addAbortListener(hangUp.signal, reject);
  });
  let isRefused = false;
  const fail = (reason: unknown): void => {
    if (response.headersSent) return void hangUp.abort(reason);
    isRefused = true;
    refuse(reason);
  };
  const send = (line: string): void => {
    if (hangUp.signal.aborted || isRefused) return;
    const begin = () => response.headersSent || response.writeHead(200, headers);
    if (!outgoing.write(line, begin)) fail(new OutOfMemory());
  };
  const output = {
    send,
    get isReady() {
      return unsent.bytes <= SEND_BUFFER;
    },
    ready: () => unsent.atMost(SEND_BUFFER),
    fail,
    take: (bytes: number) => share.take(bytes),
    give: (bytes: number) => share.give(bytes),
  };
  const end = open(output);
  try {
    await ended;
  } catch (error) {
    if (error !== CLOSED_HALF || !response.headersSent || !outgoing.write(lastLine)) throw error;
    outgoing.end();
  } finally {
    end();
  }
}
