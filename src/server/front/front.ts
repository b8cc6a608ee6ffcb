import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { ignore } from '../../base/cancellation.ts';
import { createDebug } from '../../base/debug.ts';
import { now } from '../../base/time.ts';
import * as wire from '../../v2/wire.ts';
import { type Budget, processBudget } from '../budget.ts';
import { type KeysOfUsers, OutOfMemory, Overloaded } from '../served-keys.ts';
import type { EtcdVersion } from '../version.ts';
import { type Reading, readBody, readForm } from './body.ts';
import { replyOf, untilHangUp } from './calls.ts';
import { cutOff, isCutOff } from './connection/cut-off.ts';
import { send } from './connection/outgoing.ts';
import { Pipeline } from './connection/pipeline.ts';
import type { Work } from './connection/work.ts';
import { type Gateway, serveStream } from './gateway.ts';
import { refusalOfHeaders } from './headers.ts';
import type { WebServer } from './http-server.ts';
import { type Page, pagesAbout } from './info.ts';
import * as replies from './replies.ts';
import { Tally } from './tally.ts';
import { clean, parseTarget, type Target } from './target.ts';
import { serveWait, type Wait } from './wait.ts';
import { Waits } from './waits.ts';
import { refusalOf } from './web-pages.ts';

const debug = createDebug('server');

/** Memory that a request costs besides its headers and its body, until it is answered and its work has ended. */
const REQUEST_COST = 4096;

/** Memory that a header costs besides its text. */
const HEADER_COST = 64;

/** Code of Node's error for bytes behind a request with `Connection: close`. etcd does not read them. */
const BEHIND_LAST_REQUEST = 'HPE_CLOSED_CONNECTION';

const KEYS = '/v2/keys';
const KEYS_METHODS = ['HEAD', 'GET', 'PUT', 'POST', 'DELETE'];

/** A request that has been answered, or whose client has hung up. */
export interface Served {
  readonly method: string;
  readonly url: string;
  /** The operation on keys; undefined for a request for another page, and for one refused before it was decoded. */
  readonly call: wire.KeysRequest['call'] | undefined;
  readonly status: number;
  /** Whether the client hung up before the end of the answer, or was cut off by the server. */
  readonly isCutOff: boolean;
  /** Why it failed; undefined if it succeeded, or ended because it was cut off. */
  readonly error: unknown;
  /** Time to answer the request. For a long poll, this includes the wait for the event. */
  readonly seconds: number;
  /** IP address of the client; undefined if the connection has ended. */
  readonly client: string | undefined;
}

/** What a {@link Front} serves, and how. */
export interface FrontOptions {
  /** The keys of etcd v2; undefined: the server has no v2 API. */
  readonly keys?: KeysOfUsers | undefined;
  /** The API of etcd v3; undefined: the server has none. */
  readonly gateway?: Gateway | undefined;
  /** This server, as its own pages describe it. */
  readonly member: wire.MemberInfo;
  /** The version of etcd that the server imitates. Default 3.4. */
  readonly version?: EtcdVersion;
  /** Hosts that a request may have in its `Host` header: the one that the server was started with, and others. */
  readonly hosts: readonly string[];
  /** Further pages by path. They replace the page of etcd with the same path. */
  readonly pages?: Iterable<readonly [string, Page]>;
  /** Maximum number of open requests with `wait=true`; further requests get status 503 after one second. Default: no limit. */
  readonly maxWaits?: number;
  /** Memory that requests, unread answers and polls may use. Default: that of the process. */
  readonly budget?: Budget;
  /** Milliseconds after which a client that takes nothing of its answers is cut off. Default 30,000. */
  readonly patience?: number;
  readonly onServed?: (served: Served) => void;
}

/** Serves keys over etcd's v2 HTTP API, and etcd v3 over its JSON gateway. */
export class Front {
  readonly #options: FrontOptions;
  readonly #version: EtcdVersion;
  readonly #pages: ReadonlyMap<string, Page>;
  readonly #tally = new Tally();
  readonly #waits: Waits;
  readonly #pipelines = new WeakMap<Socket, Pipeline>();

  constructor(options: FrontOptions) {
    this.#options = options;
    this.#version = options.version ?? '3.4';
    const pages = [...pagesAbout(options.member, this.#version, () => this.#tally.counts), ...(options.pages ?? [])];
    this.#pages = new Map(options.keys ? pages : pages.filter(([path]) => !path.startsWith('/v2/')));
    this.#waits = new Waits(options.maxWaits ?? Number.POSITIVE_INFINITY);
  }

  /** Number of open requests with `wait=true`: long polls and streams. */
  get waits(): number {
    return this.#waits.size;
  }

  /** Ends all requests with `wait=true`, now and later: cuts off their clients, so that they fail over to another server. */
  endWaits(): void {
    this.#waits.end();
  }

  /** Answers the requests that a server gets. */
  serve(server: WebServer): void {
    server.on('request', (request, response) => this.#accept(request, response));
    server.on('clientError', (error: NodeJS.ErrnoException, socket) => this.#break(error, socket as Socket));
  }

  #accept(request: IncomingMessage, response: ServerResponse): void {
    const { socket } = request;
    if (socket.destroyed) return; // reset at an earlier request
    const { budget = processBudget, patience = 30_000 } = this.#options;
    const known = this.#pipelines.get(socket);
    const pipeline = known ?? new Pipeline(socket, budget, patience);
    if (known ? pipeline.isFull : isCutOff(request)) return void cutOff(socket);
    this.#pipelines.set(socket, pipeline);
    const share = pipeline.newShare();
    const hasRoom = share.take(costOf(request));
    // A request behind others cannot be refused before they are answered.
    if (!hasRoom && pipeline.isBusy) return void cutOff(socket);
    const target = parseTarget(request.url ?? '');
    const body = hasRoom ? this.#read(request, target, { share, broken: pipeline.broken }) : refuseBody(request);
    body.catch(ignore); // reported when the request's turn comes
    const hangUp = new AbortController();
    const work = { request, response, target, body, pipeline, share, hangUp, call: undefined };
    pipeline.add(work, () => this.#serve(work).catch(() => void response.destroy()));
  }

  #read(request: IncomingMessage, target: Target | undefined, reading: Reading): Promise<string> {
    const { gateway } = this.#options;
    if (target && gateway?.serves(target.path)) return readBody(request, reading, gateway.bodyLimit);
    return readForm(request, reading);
  }

  /** Ends a connection that has an error, or whose client has sent something that is not a request. */
  #break(error: NodeJS.ErrnoException, socket: Socket): void {
    if (error.code === BEHIND_LAST_REQUEST) return; // the answer to that request ends the connection
    const refusal = replies.unreadable(error);
    const pipeline = this.#pipelines.get(socket);
    if (!refusal || !socket.writable) return void socket.destroy();
    if (pipeline) return void pipeline.break(error, replies.encoded(refusal));
    socket.write(replies.encoded(refusal), 'latin1');
    socket.destroySoon();
  }

  async #serve(work: Work): Promise<void> {
    const { request, response, hangUp } = work;
    const { socket } = request;
    // Not writable: an earlier answer has ended the connection. Node then neither sends nor closes this response.
    if (response.destroyed || !socket.writable) return;
    const abort = (): void => {
      // The end of an answer is no hang-up; to abort makes an error, for each request.
      if (!response.writableFinished) hangUp.abort();
    };
    response.once('close', abort);
    socket.once('close', abort);
    response.on('error', ignore); // a write fails after the client has hung up
    try {
      await this.#answerOrFail(work);
    } finally {
      socket.off('close', abort);
    }
  }

  /** Answers a request, with an error if need be, and reports it to `onServed`. */
  async #answerOrFail(work: Work): Promise<void> {
    const { request, response, hangUp } = work;
    const begunAt = now();
    let failure: unknown;
    try {
      await this.#answer(work);
    } catch (error) {
      failure = error;
      debug('%s %s: %s', request.method, request.url, error);
      this.#fail(work, error);
    }
    const { method = '', url = '' } = request;
    this.#options.onServed?.({
      method,
      url,
      call: work.call,
      status: response.statusCode,
      isCutOff: hangUp.signal.aborted,
      error: failure === hangUp.signal.reason ? undefined : failure,
      seconds: (now() - begunAt) / 1000,
      client: request.socket.remoteAddress,
    });
  }

  async #answer(work: Work): Promise<void> {
    const { request, target, body } = work;
    const { method = '', url = '' } = request;
    const { keys, gateway } = this.#options;
    const badHeaders = refusalOfHeaders(request);
    if (badHeaders) return this.#send(work, badHeaders);
    const refusal = refusalOf(request.headers, this.#options.hosts);
    if (refusal !== undefined) return this.#send(work, replies.forbidden(refusal));
    if (!target) return this.#send(work, replies.malformed);
    const path = this.#cleanPath(target);
    if (path !== target.path) return this.#send(work, this.#movedTo({ ...target, path }, method));
    const page = this.#pages.get(path);
    if (page?.ofCluster) return this.#sendOfCluster(work, await replies.page(page, method));
    if (page) return this.#send(work, await replies.page(page, method));
    if (gateway?.serves(path)) return this.#serveGateway(gateway, path, work);
    if (!keys || (path !== KEYS && !path.startsWith(`${KEYS}/`))) return this.#send(work, replies.notFound);
    if (!KEYS_METHODS.includes(method)) return this.#send(work, replies.notAllowed(KEYS_METHODS));
    const fields = wire.parseFields(await body, target.query);
    const key = path.slice(KEYS.length).replace(/\/$/, '') || '/';
    const { request: asked, noValueOnSuccess } = wire.decodeKeysRequest(method, key, fields);
    debug('%s %s: %s', method, url, asked);
    work.call = asked.call;
    const { authorization } = request.headers;
    if (asked.call === 'watch') return this.#waitFor(keys, authorization, asked, work);
    await keys.use(authorization, async (served) => {
      const reply = await untilHangUp(work, (signal) =>
        this.#tally.call(asked, () => replyOf(served, asked, { noValueOnSuccess, signal })),
      );
      this.#sendOfCluster(work, reply);
    });
  }

  /** Returns the path that etcd redirects to, or the path itself. */
  #cleanPath(target: Target): string {
    const path = clean(target.path);
    return path === this.#options.gateway?.root ? `${path}/` : path;
  }

  #movedTo(target: Target, method: string): wire.WireReply {
    // etcd 3.4 is built with an older Go.
    return replies.movedTo(target, method, this.#version === '3.4' ? 301 : 307);
  }

  #waitFor(keys: KeysOfUsers, authorization: string | undefined, asked: Wait, work: Work): Promise<void> {
    const { response, pipeline, hangUp } = work;
    const begin = () => this.#nameCluster(response);
    const context = { hangUp: hangUp.signal, unsent: pipeline.unsent, begin };
    return this.#waits.serve(work, (open) =>
      keys.use(authorization, (served) =>
        open(() => this.#tally.wait(() => serveWait(served, asked, response, context))),
      ),
    );
  }

  async #serveGateway(gateway: Gateway, path: string, work: Work): Promise<void> {
    const { request, response, pipeline, hangUp, body, share } = work;
    const { method = '', headers } = request;
    const answer = await gateway.answer({ method, path, headers, body });
    if ('open' in answer)
      return this.#waits.serve(work, (open) =>
        open(() => serveStream(answer, response, { hangUp, unsent: pipeline.unsent, share })),
      );
    if (answer.reply && send(work, answer.reply)) return;
    // A write that was carried out is not refused because of its answer.
    if (!answer.isWrite) throw new OutOfMemory();
    cutOff(request.socket);
  }

  #fail(work: Work, error: unknown): void {
    const { request, response, pipeline, hangUp, call } = work;
    const { aborted, reason } = hangUp.signal;
    const isOver = response.headersSent || (aborted && (call === 'watch' || error === reason));
    // A write that was carried out is not refused because of its answer.
    if (isOver || (error instanceof OutOfMemory && isWrite(call))) return void response.destroy();
    let reply: wire.WireReply;
    if (error === pipeline.broken.reason) reply = replies.unreadable(pipeline.broken.reason) ?? replies.malformed;
    else if (error instanceof Overloaded) reply = this.#overloaded(work, error.message);
    else {
      this.#nameCluster(response);
      reply = wire.encodeError(error);
    }
    if (!send(work, reply)) cutOff(request.socket);
  }

  #overloaded({ target }: Work, why: string): wire.WireReply {
    const { gateway } = this.#options;
    return target && gateway?.serves(target.path) ? gateway.overloaded(why) : replies.overloaded(why);
  }

  #sendOfCluster(work: Work, reply: wire.WireReply): void {
    this.#nameCluster(work.response);
    this.#send(work, reply);
  }

  /** @throws {OutOfMemory} if the budget has no room for the answer */
  #send(work: Work, reply: wire.WireReply): void {
    if (!send(work, reply)) throw new OutOfMemory();
  }

  #nameCluster(response: ServerResponse): void {
    const clusterId = this.#options.keys?.clusterId;
    if (clusterId !== undefined) response.setHeader('X-Etcd-Cluster-Id', clusterId);
  }
}

function refuseBody(request: IncomingMessage): Promise<never> {
  request.resume();
  return Promise.reject(new OutOfMemory());
}

/** Returns the memory that a request costs besides its body. */
const costOf = ({ url = '', rawHeaders }: IncomingMessage): number =>
  rawHeaders.reduce((sum, text) => sum + text.length + HEADER_COST / 2, REQUEST_COST + url.length);

const isWrite = (call: Work['call']): boolean => call !== undefined && call !== 'get' && call !== 'watch';
