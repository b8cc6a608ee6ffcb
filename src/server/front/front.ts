import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { ignore } from '../../cancellation.ts';
import { createDebug } from '../../debug.ts';
import type { Change } from '../../v2/keys-api.ts';
import * as wire from '../../v2/wire.ts';
import type { ServedKeys } from '../served-keys.ts';
import { readForm } from './body.ts';
import { isCutOff } from './http-server.ts';
import { type Page, pagesAbout } from './info.ts';
import { Pipeline } from './pipeline.ts';
import * as replies from './replies.ts';
import { Tally } from './tally.ts';
import { clean, parseTarget } from './target.ts';
import { serveWait, type Wait } from './wait.ts';
import { refusalOf } from './web-pages.ts';

const debug = createDebug('server');

const KEYS = '/v2/keys';
const KEYS_METHODS = ['HEAD', 'GET', 'PUT', 'POST', 'DELETE'];

type Read = Extract<wire.KeysRequest, { call: 'get' }>;
type Write = Exclude<wire.KeysRequest, Read | Wait>;

/** Serves any {@link ServedKeys} over etcd's v2 HTTP API. Pass its `listener` to an HTTP server. */
export class Front {
  readonly #keys: ServedKeys;
  readonly #hosts: readonly string[];
  readonly #pages: ReadonlyMap<string, Page>;
  readonly #tally = new Tally();
  /** End the waits under way. */
  readonly #waits = new Set<AbortController>();
  readonly #pipelines = new WeakMap<Socket, Pipeline>();

  /**
   * @param member this server, as its own pages describe it
   * @param hosts the host that the server was started with, and others by which requests may address it
   */
  constructor(keys: ServedKeys, member: wire.Member, hosts: readonly string[]) {
    this.#keys = keys;
    this.#hosts = hosts;
    this.#pages = pagesAbout(member, () => this.#tally.counts);
  }

  /** Cuts off the clients that wait, so that they go on at another server. */
  endWaits(): void {
    for (const wait of this.#waits) wait.abort(new Error('the server stops'));
  }

  readonly listener: RequestListener = (request, response) => {
    const { socket } = request;
    if (socket.destroyed) return; // reset at an earlier request
    const known = this.#pipelines.get(socket);
    const pipeline = known ?? new Pipeline(socket);
    if (known ? pipeline.isFull : isCutOff(request)) return void socket.resetAndDestroy();
    this.#pipelines.set(socket, pipeline);
    const form = readForm(request);
    form.catch(ignore); // reported when the request's turn comes
    pipeline.add(() => this.#serve(request, response, form).catch(() => void response.destroy()));
  };

  async #serve(request: IncomingMessage, response: ServerResponse, form: Promise<string>): Promise<void> {
    const hangUp = new AbortController();
    response.once('close', () => hangUp.abort());
    response.on('error', ignore); // a write fails after the client has hung up
    if (response.destroyed || request.socket.destroyed) return;
    try {
      await this.#answer(request, response, form, hangUp);
    } catch (error) {
      debug('%s %s: %s', request.method, request.url, error);
      if (response.headersSent) response.destroy();
      else this.#sendOfCluster(response, wire.encodeError(error));
    }
  }

  async #answer(
    request: IncomingMessage,
    response: ServerResponse,
    form: Promise<string>,
    hangUp: AbortController,
  ): Promise<void> {
    const { method = '', url = '' } = request;
    const refusal = refusalOf(request.headers, this.#hosts);
    if (refusal !== undefined) return send(response, replies.forbidden(refusal));
    const target = parseTarget(url);
    if (!target) return send(response, replies.malformed);
    const path = clean(target.path);
    if (path !== target.path) return send(response, replies.movedTo({ ...target, path }, method));
    const page = this.#pages.get(path);
    if (page?.ofCluster) return this.#sendOfCluster(response, replies.page(page, method));
    if (page) return send(response, replies.page(page, method));
    if (path !== KEYS && !path.startsWith(`${KEYS}/`)) return send(response, replies.notFound);
    if (!KEYS_METHODS.includes(method)) return send(response, replies.notAllowed(KEYS_METHODS));
    const fields = wire.parseFields(await form, target.query);
    const key = path.slice(KEYS.length).replace(/\/$/, '') || '/';
    const { request: asked, noValueOnSuccess } = wire.decodeKeysRequest(method, key, fields);
    debug('%s %s: %s', method, url, asked);
    if (asked.call === 'watch') {
      const context = { hangUp: hangUp.signal, begin: () => this.#nameCluster(response) };
      this.#waits.add(hangUp);
      response.once('close', () => this.#waits.delete(hangUp));
      await this.#tally.wait(() => serveWait(this.#keys, asked, response, context));
    } else {
      const reply = await this.#tally.call(asked, () => this.#reply(asked, noValueOnSuccess));
      this.#sendOfCluster(response, reply);
    }
  }

  async #reply(asked: Read | Write, noValueOnSuccess: boolean): Promise<wire.WireReply> {
    if (asked.call === 'get') return wire.encodeSnapshot(await this.#keys.get(asked.key, asked.options));
    return wire.encodeChange(await this.#write(asked), noValueOnSuccess);
  }

  #write(asked: Write): Promise<Change> {
    if (asked.call === 'delete') return this.#keys.delete(asked.key, asked.options);
    return this.#keys[asked.call](asked.key, asked.value, asked.options);
  }

  #sendOfCluster(response: ServerResponse, reply: wire.WireReply): void {
    this.#nameCluster(response);
    send(response, reply);
  }

  #nameCluster(response: ServerResponse): void {
    if (this.#keys.clusterId !== undefined) response.setHeader('X-Etcd-Cluster-Id', this.#keys.clusterId);
  }
}

function send(response: ServerResponse, { status, headers, body }: wire.WireReply): void {
  response.writeHead(status, { ...headers, 'Content-Length': Buffer.byteLength(body) });
  response.end(body);
}
