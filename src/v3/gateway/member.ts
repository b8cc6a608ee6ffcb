import { Scope } from '../../base/cancellation.ts';
import { createDebug } from '../../base/debug.ts';
import { EtcdInsufficientPermissions } from '../../errors.ts';
import type { ClusterAttempt } from '../../http/cluster.ts';
import type { SendOptions } from '../../http/endpoint.ts';
import { noAnswer } from '../../http/failover/failures.ts';
import type { WireAnswer, WireRequest } from '../../http/message.ts';
import { refused, subjectOf, type Token } from './authentication.ts';
import { decodeBody, withHint } from './errors.ts';
import { decodeHeader, Fields, type Header, type Json, unusable } from './messages.ts';

const debug = createDebug('client');

/** An answer, with its header checked. */
export interface GatewayAnswer {
  readonly fields: Fields;
  readonly header: Header;
  /** When the request was sent: milliseconds on the monotonic clock. */
  readonly sentAt: number;
  readonly member: string;
  /** Returns the error for an answer that contradicts the request. */
  readonly unusable: (why: string) => Error;
}

/** The member that one attempt asks. */
export interface AskedMember {
  readonly url: string;
  /** Sends a message to a path below the gateway's prefix, such as `/kv/txn`. */
  ask(path: string, message: Json): Promise<GatewayAnswer>;
  /**
   * Like `ask`, for messages whose answer has no end. Resolves when the member ends the stream. Rejects with the reason of `over` when
   * that aborts.
   */
  stream(path: string, messages: readonly Json[], onData: (chunk: Buffer) => void, over: Scope): Promise<void>;
}

/** With this header, a member that knows no leader refuses a request at once, instead of after 7 s. */
const HEADERS = ['content-type', 'application/json', 'grpc-metadata-hasleader', 'true'];

/** How to ask a member. */
interface Access {
  /** Path prefix of the gateway. */
  readonly prefix: string;
  readonly token: Token;
  readonly username: string | undefined;
  /** Checks the cluster id of an answer. */
  readonly checkCluster: (header: Header) => void;
}

/** Sends the requests of one attempt to a gateway. */
export class GatewayMember implements AskedMember {
  readonly #attempt: ClusterAttempt;
  readonly #access: Access;

  constructor(attempt: ClusterAttempt, access: Access) {
    this.#attempt = attempt;
    this.#access = access;
  }

  get url(): string {
    return this.#attempt.endpoint.url;
  }

  async ask(path: string, message: Json): Promise<GatewayAnswer> {
    const attempt = this.#attempt;
    const { prefix, token, username, checkCluster } = this.#access;
    const request = requestOf(prefix + path, JSON.stringify(message), token);
    try {
      // Only the answer to a read may be long. A write whose answer takes its time is sent to another member.
      const long = attempt.lane === 'read' ? attempt.ifLong : undefined;
      const answer = received(attempt, request, await send(attempt, request, { long }));
      const body = new Fields(answer, decodeBody(answer));
      // The answer to a keep-alive is a stream of one message, wrapped in `result`.
      const fields = body.optional('result') ?? body;
      const header = decodeHeader(fields);
      checkCluster(header);
      return { fields, header, sentAt: answer.sentAt, member: this.url, unusable: (why) => unusable(answer, why) };
    } catch (error) {
      if (error instanceof EtcdInsufficientPermissions)
        throw refused(error, { member: this.url, username, subject: subjectOf(message) });
      throw withHint(error);
    }
  }

  async stream(path: string, messages: readonly Json[], onData: (chunk: Buffer) => void, over: Scope): Promise<void> {
    const { prefix, token } = this.#access;
    const ending = new Scope(this.#attempt.ending, over);
    const text = messages.map((message) => JSON.stringify(message)).join('\n');
    const unlimited = { ...this.#attempt, ending, timeout: Number.POSITIVE_INFINITY };
    try {
      await answerTo(unlimited, requestOf(prefix + path, text, token), { onData });
    } finally {
      ending.dispose();
    }
  }
}

/** Returns the request for a path that includes the gateway's prefix. */
export const requestOf = (path: string, json: string, { text }: Token): WireRequest => ({
  method: 'POST',
  path,
  query: '',
  json,
  headers: text === undefined ? HEADERS : [...HEADERS, 'authorization', text],
});

/**
 * Sends a request of an attempt.
 * @throws {EtcdConnectionFailed} also if no answer comes within the attempt's timeout
 */
export async function answerTo(
  attempt: ClusterAttempt,
  request: WireRequest,
  options: Pick<SendOptions, 'onData'> = {},
): Promise<WireAnswer> {
  try {
    return received(attempt, request, await send(attempt, request, options));
  } catch (error) {
    throw withHint(error);
  }
}

function send(
  { endpoint, ending, lane, timeout, onRequest }: ClusterAttempt,
  request: WireRequest,
  { onData, long }: Pick<SendOptions, 'onData' | 'long'>,
): Promise<WireAnswer | undefined> {
  const options = { ending, lane, timeout, onData, long };
  const turn = onRequest(ending);
  return turn ? turn.then(() => endpoint.send(request, options)) : endpoint.send(request, options);
}

/** @throws the error for a member that has not answered in time */
function received(
  { endpoint, timeout }: ClusterAttempt,
  { method, path }: WireRequest,
  answer: WireAnswer | undefined,
): WireAnswer {
  debug('%s %s%s: %s', method, endpoint.url, path, answer?.status ?? `no answer within ${timeout} s`);
  if (answer) return answer;
  throw noAnswer(timeout);
}
