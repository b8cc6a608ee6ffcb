import { Scope } from '../../base/cancellation.ts';
import { createDebug } from '../../base/debug.ts';
import type { PendingWork } from '../../base/pending-work.ts';
import type { Deadline } from '../../base/time.ts';
import { EtcdInsufficientPermissions, EtcdUnusableAnswer } from '../../errors.ts';
import { type CloseOptions, Cluster, type ClusterAttempt, type ClusterCall } from '../../http/cluster.ts';
import type { Lane, SendOptions } from '../../http/endpoint.ts';
import { noAnswer } from '../../http/failover/failures.ts';
import type { Repeat } from '../../http/failover/round.ts';
import type { WireAnswer, WireRequest } from '../../http/message.ts';
import type { HttpSettings } from '../../http/options.ts';
import { AskedOnce } from './asked-once.ts';
import { AUTHENTICATE, decodeToken, refused, subjectOf, type Token } from './authentication.ts';
import { decodeBody, TokenRefused, withHint } from './errors.ts';
import { decodeHeader, Fields, type Header, type Json, unusable } from './messages.ts';
import { gatewayPrefix, VERSION } from './version.ts';

const debug = createDebug('client');

/** Seconds to wait for an answer that several calls share. A login takes 0.1 to 0.2 s of the member's CPU time. */
const SHARED_TIMEOUT = 5;

/** Maximum number of new logins of one attempt. With JSON Web Tokens, each change of users or roles invalidates all tokens. */
const MOST_LOG_INS = 3;

const NO_TOKEN: Token = { text: undefined };

/** With this header, a member that knows no leader refuses a request at once, instead of after 7 s. */
const NEEDS_LEADER = ['grpc-metadata-hasleader', 'true'];

/** How to reach the members, and with which password. */
export interface GatewaySettings extends HttpSettings {
  readonly password: string | undefined;
}

/** Options of one call. */
export interface GatewayCall extends ClusterCall {
  /** Default `call`, or `background` for work in the background. */
  readonly lane?: Lane;
}

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

/** Makes calls to the JSON gateways of one cluster (etcd 3.3 and later): finds their path prefix, logs in, checks the cluster id. */
export class GatewayClient {
  readonly #settings: GatewaySettings;
  readonly #cluster: Cluster;
  readonly #prefixes = new AskedOnce<string>();
  readonly #tokens = new AskedOnce<Token>();

  constructor(settings: GatewaySettings) {
    this.#settings = settings;
    this.#cluster = new Cluster(settings);
  }

  /** Id of the cluster that answered last; undefined before the first answer. */
  get clusterId(): string | undefined {
    return this.#cluster.id;
  }

  /**
   * Whether it knows only one member, so that a request that is not answered cannot be sent to another. A host name may have several
   * addresses, each a member.
   */
  get knowsOneMember(): boolean {
    return this.#cluster.endpoints.isOneMember;
  }

  /** Work that closing the client waits for. */
  get pending(): PendingWork {
    return this.#cluster.pending;
  }

  /** Ends all work when the client is closed. */
  get destroyed(): Scope {
    return this.#cluster.destroyed;
  }

  /** Makes one call: runs `attempt` with one member after another until one answers. */
  call<T>(repeat: Repeat, options: GatewayCall, attempt: (member: AskedMember) => Promise<T>): Promise<T> {
    return this.#cluster.call(repeat, options, (one) =>
      this.#attempt({ ...one, lane: options.lane ?? one.lane }, attempt),
    );
  }

  /** See {@link Cluster.close}. */
  close(options: CloseOptions, finish: (until: Deadline) => Promise<void>): Promise<void> {
    return this.#cluster.close(options, finish);
  }

  /**
   * Makes one attempt. Caches a token for each member: a member forgets a token that is not used there for some minutes. Logs in
   * again when the token is refused.
   */
  async #attempt<T>(one: ClusterAttempt, attempt: (member: AskedMember) => Promise<T>): Promise<T> {
    const { endpoint } = one;
    const prefix = this.#prefixes.known(endpoint) ?? (await this.#prefixes.get(one, () => this.#findPrefix(one)));
    for (let logIns = 0; ; logIns += 1) {
      const token = this.#tokens.known(endpoint) ?? (await this.#token(one, prefix));
      try {
        return await attempt(this.#member(one, prefix, token));
      } catch (error) {
        // The member may now run another version, with another path prefix.
        if (error instanceof EtcdUnusableAnswer && error.httpStatus === 404) this.#prefixes.forget(endpoint, prefix);
        if (!(error instanceof TokenRefused)) throw error;
        this.#tokens.forget(endpoint, token);
        if (this.#settings.password === undefined || logIns === MOST_LOG_INS) throw error.final;
      }
    }
  }

  #member(one: ClusterAttempt, prefix: string, token: Token): AskedMember {
    const { url } = one.endpoint;
    const member = { member: url, username: this.#settings.username };
    return {
      url,
      ask: async (path, message) => {
        try {
          // Only the answer to a read may be long. A write whose answer takes its time is sent to another member.
          const long = one.lane === 'read' ? one.ifLong : undefined;
          const answer = await this.#send(one, requestOf(prefix + path, [message], token), { long });
          const body = new Fields(answer, decodeBody(answer));
          // The answer to a keep-alive is a stream of one message, wrapped in `result`.
          const fields = body.optional('result') ?? body;
          const header = decodeHeader(fields);
          this.#checkCluster(header);
          return { fields, header, sentAt: answer.sentAt, member: url, unusable: (why) => unusable(answer, why) };
        } catch (error) {
          if (error instanceof EtcdInsufficientPermissions)
            throw refused(error, { ...member, subject: subjectOf(message) });
          throw error;
        }
      },
      stream: async (path, messages, onData, over) => {
        const ending = new Scope(one.ending, over);
        const unlimited = { ...one, ending, timeout: Number.POSITIVE_INFINITY };
        try {
          await this.#send(unlimited, requestOf(prefix + path, messages, token), { onData });
        } finally {
          ending.dispose();
        }
      },
    };
  }

  async #findPrefix(one: ClusterAttempt): Promise<string> {
    return gatewayPrefix(await this.#send(this.#shared(one), VERSION));
  }

  async #token(one: ClusterAttempt, prefix: string): Promise<Token> {
    const { username, password } = this.#settings;
    const logIn = async (): Promise<Token> => {
      if (password === undefined) return NO_TOKEN;
      const request = requestOf(prefix + AUTHENTICATE, [{ name: username, password }], NO_TOKEN);
      return decodeToken(await this.#send(this.#shared(one), request), password);
    };
    try {
      return await this.#tokens.get(one, logIn);
    } catch (error) {
      if (error instanceof EtcdInsufficientPermissions) throw refused(error, { member: one.endpoint.url, username });
      throw error;
    }
  }

  /** Returns an attempt at a request that several calls share: the request continues when one of these calls ends. */
  #shared(one: ClusterAttempt): ClusterAttempt {
    return { ...one, timeout: Math.min(SHARED_TIMEOUT, this.#settings.readTimeout), ending: this.destroyed };
  }

  async #send(
    { endpoint, ending, lane, timeout, onRequest }: ClusterAttempt,
    request: WireRequest,
    { onData, long }: Pick<SendOptions, 'onData' | 'long'> = {},
  ): Promise<WireAnswer> {
    const turn = onRequest(ending);
    if (turn) await turn;
    const answer = await endpoint.send(request, { ending, lane, timeout, onData, long }).catch((error: unknown) => {
      throw withHint(error);
    });
    debug('%s %s%s: %s', request.method, endpoint.url, request.path, answer?.status ?? `no answer within ${timeout} s`);
    if (answer) return answer;
    throw noAnswer(timeout);
  }

  /** @throws {EtcdClusterIdChanged | EtcdUnusableAnswer} if the cluster id is not the expected one, or absent */
  #checkCluster({ clusterId }: Header): void {
    if (clusterId === undefined) throw new EtcdUnusableAnswer('the answer has no cluster id', { outcomeUnknown: true });
    this.#cluster.checkId(clusterId);
  }
}

const requestOf = (path: string, messages: readonly Json[], { text }: Token): WireRequest => ({
  method: 'POST',
  path,
  query: '',
  json: messages.map((message) => JSON.stringify(message)).join('\n'),
  headers: text === undefined ? NEEDS_LEADER : [...NEEDS_LEADER, 'authorization', text],
});
