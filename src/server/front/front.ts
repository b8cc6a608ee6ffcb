import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { ignore, pause } from '../../cancellation.ts';
import { createDebug } from '../../debug.ts';
import { now } from '../../time.ts';
import type { Change } from '../../v2/keys-api.ts';
import * as wire from '../../v2/wire.ts';
import { type KeysOfUsers, Overloaded, type ServedKeys } from '../served-keys.ts';
import { readForm } from './body.ts';
import { cutOff, isCutOff } from './http-server.ts';
import { type Page, pagesAbout } from './info.ts';
import { Pipeline } from './pipeline.ts';
import * as replies from './replies.ts';
import { Tally } from './tally.ts';
import { clean, parseTarget } from './target.ts';
import { serveWait, type Wait } from './wait.ts';
import { refusalOf } from './web-pages.ts';

const debug = createDebug('server');

/** Milliseconds before a poll beyond a limit, of polls or of users, is refused. */
const REFUSE_AFTER = 1000;

/** Abort reason of requests with `wait=true` when the server stops. */
const STOPPING = new Error('the server is stopping');

/** Events of a socket whose client has hung up. */
const HANG_UPS = ['end', 'error'] as const;

const KEYS = '/v2/keys';
const KEYS_METHODS = ['HEAD', 'GET', 'PUT', 'POST', 'DELETE'];

type Read = Extract<wire.KeysRequest, { call: 'get' }>;
type Write = Exclude<wire.KeysRequest, Read | Wait>;

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
  readonly keys: KeysOfUsers;
  /** This server, as its own pages describe it. */
  readonly member: wire.Member;
  /** Hosts that a request may have in its `Host` header: the one that the server was started with, and others. */
  readonly hosts: readonly string[];
  /** Further pages by path. They replace the page of etcd with the same path. */
  readonly pages?: Iterable<readonly [string, Page]>;
  /** Maximum number of open requests with `wait=true`; further requests get status 503 after one second. Default: no limit. */
  readonly maxWaits?: number;
  readonly onServed?: (served: Served) => void;
}

/** Serves keys over etcd's v2 HTTP API. Pass its `listener` to an HTTP server. */
export class Front {
  readonly #options: FrontOptions;
  readonly #pages: ReadonlyMap<string, Page>;
  readonly #tally = new Tally();
  /** One for each open request with `wait=true`. Aborting it ends the request. */
  readonly #waits = new Set<AbortController>();
  /** One for each request with `wait=true` that will be refused. Aborting it ends the request. */
  readonly #refused = new Set<AbortController>();
  readonly #pipelines = new WeakMap<Socket, Pipeline>();
  #isStopping = false;

  constructor(options: FrontOptions) {
    this.#options = options;
    this.#pages = new Map([...pagesAbout(options.member, () => this.#tally.counts), ...(options.pages ?? [])]);
  }

  /** Number of open requests with `wait=true`: long polls and streams. */
  get waits(): number {
    return this.#waits.size;
  }

  /** Ends all requests with `wait=true`, now and later: cuts off their clients, so that they fail over to another server. */
  endWaits(): void {
    this.#isStopping = true;
    for (const wait of [...this.#waits, ...this.#refused]) wait.abort(STOPPING);
  }

  readonly listener: RequestListener = (request, response) => {
    const { socket } = request;
    if (socket.destroyed) return; // reset at an earlier request
    const known = this.#pipelines.get(socket);
    const pipeline = known ?? new Pipeline(socket);
    if (known ? pipeline.isFull : isCutOff(request)) return cutOff(socket);
    this.#pipelines.set(socket, pipeline);
    const form = readForm(request);
    form.catch(ignore); // reported when the request's turn comes
    pipeline.add(response, () => this.#serve(request, response, form).catch(() => void response.destroy()));
  };

  async #serve(request: IncomingMessage, response: ServerResponse, form: Promise<string>): Promise<void> {
    const { socket } = request;
    // Not writable: an earlier answer has ended the connection. Node then neither sends nor closes this response.
    if (response.destroyed || !socket.writable) return;
    const hangUp = new AbortController();
    const abort = (): void => hangUp.abort();
    response.once('close', abort);
    socket.once('close', abort);
    response.on('error', ignore); // a write fails after the client has hung up
    try {
      await this.#answerOrFail({ request, response, form, hangUp, call: undefined });
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
      if (response.headersSent || hangUp.signal.reason === STOPPING) response.destroy();
      else if (error instanceof Overloaded) send(response, replies.overloaded(error.message));
      else this.#sendOfCluster(response, wire.encodeError(error));
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
    const { request, response, form } = work;
    const { method = '', url = '' } = request;
    const refusal = refusalOf(request.headers, this.#options.hosts);
    if (refusal !== undefined) return send(response, replies.forbidden(refusal));
    const target = parseTarget(url);
    if (!target) return send(response, replies.malformed);
    const path = clean(target.path);
    if (path !== target.path) return send(response, replies.movedTo({ ...target, path }, method));
    const page = this.#pages.get(path);
    if (page?.ofCluster) return this.#sendOfCluster(response, await replies.page(page, method));
    if (page) return send(response, await replies.page(page, method));
    if (path !== KEYS && !path.startsWith(`${KEYS}/`)) return send(response, replies.notFound);
    if (!KEYS_METHODS.includes(method)) return send(response, replies.notAllowed(KEYS_METHODS));
    const fields = wire.parseFields(await form, target.query);
    const key = path.slice(KEYS.length).replace(/\/$/, '') || '/';
    const { request: asked, noValueOnSuccess } = wire.decodeKeysRequest(method, key, fields);
    debug('%s %s: %s', method, url, asked);
    work.call = asked.call;
    const { authorization } = request.headers;
    if (asked.call === 'watch') return this.#waitFor(authorization, asked, work);
    await this.#options.keys.use(authorization, async (keys) => {
      const reply = await untilHangUp(work, (signal) =>
        this.#tally.call(asked, () => replyOf(keys, asked, { noValueOnSuccess, signal })),
      );
      this.#sendOfCluster(response, reply);
    });
  }

  async #waitFor(authorization: string | undefined, asked: Wait, work: Work): Promise<void> {
    const { hangUp } = work;
    if (this.#isStopping) hangUp.abort(STOPPING);
    hangUp.signal.throwIfAborted();
    try {
      await this.#options.keys.use(authorization, (keys) => this.#wait(keys, asked, work));
    } catch (error) {
      if (!(error instanceof Overloaded)) throw error;
      // python-etcd repeats a refused poll at once.
      this.#refused.add(hangUp);
      await pause(REFUSE_AFTER, hangUp.signal);
      this.#refused.delete(hangUp);
      hangUp.signal.throwIfAborted();
      throw error;
    }
  }

  async #wait(keys: ServedKeys, asked: Wait, { response, hangUp }: Work): Promise<void> {
    const { maxWaits = Number.POSITIVE_INFINITY } = this.#options;
    if (this.#waits.size >= maxWaits)
      throw new Overloaded(`limit of ${maxWaits} open long polls reached: retry later, or use another server`);
    const context = { hangUp: hangUp.signal, begin: () => this.#nameCluster(response) };
    this.#waits.add(hangUp);
    try {
      await this.#tally.wait(() => serveWait(keys, asked, response, context));
    } finally {
      this.#waits.delete(hangUp);
    }
  }

  #sendOfCluster(response: ServerResponse, reply: wire.WireReply): void {
    this.#nameCluster(response);
    send(response, reply);
  }

  #nameCluster(response: ServerResponse): void {
    const { clusterId } = this.#options.keys;
    if (clusterId !== undefined) response.setHeader('X-Etcd-Cluster-Id', clusterId);
  }
}

/**
 * Runs the call with a signal that aborts as soon as the client hangs up. The response's 'close' may come too late: after a suspension of
 * this process, answers of etcd that have arrived are handled before it.
 */
async function untilHangUp<T>({ request, hangUp }: Work, call: (signal: AbortSignal) => Promise<T>): Promise<T> {
  const abort = (): void => hangUp.abort();
  for (const event of HANG_UPS) request.socket.once(event, abort);
  try {
    return await call(hangUp.signal);
  } finally {
    for (const event of HANG_UPS) request.socket.off(event, abort);
  }
}

/** A request that is being served. */
interface Work {
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  readonly form: Promise<string>;
  /** Aborts when the client hangs up, and by `endWaits()`. */
  readonly hangUp: AbortController;
  call: Served['call'];
}

async function replyOf(
  keys: ServedKeys,
  asked: Read | Write,
  { noValueOnSuccess, signal }: { readonly noValueOnSuccess: boolean; readonly signal: AbortSignal },
): Promise<wire.WireReply> {
  if (asked.call === 'get') return wire.encodeSnapshot(await keys.get(asked.key, { ...asked.options, signal }), signal);
  return wire.encodeChange(await write(keys, asked, signal), noValueOnSuccess);
}

/**
 * Sends a write to the store.
 * @param signal aborts when the client hangs up. Ends everything but a removal: a client that removes its entry may exit at once, and
 *   the entry would then stay until its TTL has passed.
 */
function write(keys: ServedKeys, asked: Write, signal: AbortSignal): Promise<Change> {
  if (asked.call === 'delete') return keys.delete(asked.key, asked.options);
  return keys[asked.call](asked.key, asked.value, { ...asked.options, signal });
}

function send(response: ServerResponse, { status, headers, body }: wire.WireReply): void {
  response.writeHead(status, { ...headers, 'Content-Length': Buffer.byteLength(body) });
  response.end(body);
}
