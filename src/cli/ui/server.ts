import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { createServer as createTlsServer, Server as HttpsServer, type ServerOptions } from 'node:https';
import { errorText } from '../../base/error-text.ts';
import type { TlsFiles } from '../../http/tls/files.ts';
import type { WebServer } from '../../server/front/http-server.ts';
import { type Listening, listen, urlOf } from '../../server/listening.ts';
import { Access } from './access.ts';
import type { Jobs } from './jobs.ts';
import type { PageFile } from './page-files.ts';
import type { Releases } from './release/releases.ts';
import { readRequest } from './release/requests.ts';
import type { Report, Reports } from './reports.ts';
import type { Viewers } from './viewers.ts';

export interface UiOptions extends Pick<Listening, 'host' | 'port'> {
  /** Clients need it; undefined: they need none. */
  readonly token?: string | undefined;
  /** For HTTPS. With CA certificates, each client must have a certificate of one of them. */
  readonly tls?: TlsFiles | undefined;
}

/** What the server shows. */
export interface UiData {
  readonly viewers: Viewers;
  readonly jobs: Jobs;
  readonly reports: Reports;
  /** undefined: nothing can be changed. */
  readonly releases?: Releases | undefined;
  /** The files of the page, by their path. */
  readonly page: ReadonlyMap<string, PageFile>;
}

/** Limits for connections, so that clients cost bounded memory. */
const LIMITS = { maxHeaderSize: 16 * 1024, requestTimeout: 10_000, headersTimeout: 10_000 };
const MOST_CONNECTIONS = 500;
/** Milliseconds without a byte in either direction, after which a connection ends. A stream has a sign of life more often. */
const IDLE = 60_000;

/** For each answer: the page loads nothing from elsewhere, runs no inline script, and is in no frame. */
const HEADERS = {
  'Cache-Control': 'no-store',
  'Content-Security-Policy':
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self'; " +
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'",
  'Cross-Origin-Opener-Policy': 'same-origin',
  'Cross-Origin-Resource-Policy': 'same-origin',
  'Referrer-Policy': 'no-referrer',
  'X-Content-Type-Options': 'nosniff',
  'X-Frame-Options': 'DENY',
};

const JSON_TYPE = { 'Content-Type': 'application/json' };

/** Serves the page, and its data as JSON and server-sent events. Changes nothing, unless entries may be released. */
export class UiServer {
  readonly url: string;
  readonly #server: WebServer;
  readonly #viewers: Viewers;
  readonly #endOfChanges: (() => void) | undefined;

  private constructor(server: WebServer, viewers: Viewers, tls: TlsFiles | undefined) {
    this.url = urlOf(server);
    this.#server = server;
    this.#viewers = viewers;
    this.#endOfChanges = tls?.onChange(() => {
      if (server instanceof HttpsServer) server.setSecureContext(tls.current as ServerOptions);
    });
  }

  /**
   * Starts the server. Resolves when it accepts connections.
   * @throws the system's error if it cannot listen there, such as `EADDRINUSE`
   */
  static async start(data: UiData, { host, port, token, tls }: UiOptions): Promise<UiServer> {
    const server = tls
      ? createTlsServer({
          ...LIMITS,
          ...(tls.current as ServerOptions),
          requestCert: tls.current.ca !== undefined,
          handshakeTimeout: 10_000,
        })
      : createServer(LIMITS);
    server.maxConnections = MOST_CONNECTIONS;
    server.setTimeout(IDLE);
    const access = new Access({ host, token, isSecure: tls !== undefined });
    server.on('request', (request, response) => answer({ ...data, request, response, access }));
    await listen(server, { host, port, socket: undefined, socketMode: undefined });
    return new UiServer(server, data.viewers, tls);
  }

  /** Ends all connections. Resolves when the port is free. */
  async stop(): Promise<void> {
    this.#endOfChanges?.();
    this.#viewers.stop();
    const closed = once(this.#server, 'close');
    this.#server.close();
    this.#server.closeAllConnections();
    await closed;
  }
}

interface Exchange extends UiData {
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  readonly access: Access;
}

function answer(exchange: Exchange): void {
  const { request, response, access, page, releases } = exchange;
  for (const [name, value] of Object.entries(HEADERS)) response.setHeader(name, value);
  const { path, query } = targetOf(request.url ?? '');
  const file = page.get(path);
  const refusal = access.refusal(request, file !== undefined);
  const token = query.get('token');
  const methods = releases && path === RELEASE ? ['GET', 'POST'] : ['GET'];
  if (refusal !== undefined) refuse(response, 403, refusal);
  else if (!methods.includes(request.method ?? '')) {
    response.setHeader('Allow', methods.join(', '));
    refuse(response, 405, 'only GET is answered here: nothing can be changed');
  } else if (!access.isKnown(request) || token !== null) logIn(exchange, path, token);
  else if (file) response.writeHead(200, { 'Content-Type': file.type }).end(file.content);
  else if (releases && path === RELEASE) void answerRelease(exchange, releases, query);
  else answerData(exchange, path, query);
}

/** Gives a browser the cookie for the token in the URL, and removes the token from its address bar. */
function logIn({ response, access }: Exchange, path: string, token: string | null): void {
  const cookie = token === null ? undefined : access.cookieFor(token);
  if (cookie !== undefined && path === '/') {
    response.writeHead(303, { 'Set-Cookie': cookie, Location: './' }).end();
    return;
  }
  response.setHeader('WWW-Authenticate', 'Bearer');
  const what = token === null ? 'the token is missing' : 'the token is wrong';
  refuse(response, 401, `${what}: open this page once with /?token=…, or send "Authorization: Bearer …"`);
}

function answerData({ response, viewers, jobs, reports }: Exchange, path: string, query: URLSearchParams): void {
  const name = path.startsWith(LOCK) ? decoded(path.slice(LOCK.length)) : undefined;
  if (path === '/api/locks') response.writeHead(200, JSON_TYPE).end(viewers.snapshot());
  else if (name) response.writeHead(200, JSON_TYPE).end(viewers.queue(name));
  else if (path === '/api/jobs') void answerWith(response, () => jobs.json());
  else if (path === '/api/checks') answerReport(response, reports.checks);
  else if (path === '/api/move') answerReport(response, reports.move);
  else if (path !== '/api/events')
    refuse(response, 404, 'no such page: see /, and the section "The API" of docs/ui.md');
  else if (!viewers.add(response, query.get('lock') ?? undefined))
    refuse(response, 503, `there are already ${viewers.count} viewers: close a page, or try again later`);
}

const RELEASE = '/api/release';

/** Says what the release of an entry means, or releases it. */
async function answerRelease(
  { request, response, access }: Exchange,
  releases: Releases,
  query: URLSearchParams,
): Promise<void> {
  const isChange = request.method === 'POST';
  const refusal = isChange ? access.refusalOfChange(request) : undefined;
  if (refusal !== undefined) return refuse(response, 403, refusal);
  const wanted = await readRequest(request, query);
  // Of a body that is too long, the rest is not read.
  if (!request.complete) response.setHeader('Connection', 'close');
  if ('why' in wanted) return refuse(response, wanted.status, wanted.why);
  const by = request.socket.remoteAddress ?? 'a client';
  try {
    const { status, body } = await (isChange ? releases.remove(wanted, by) : releases.plan(wanted));
    response.writeHead(status, JSON_TYPE).end(JSON.stringify(body));
  } catch (error) {
    refuse(response, 502, `etcd has not answered as expected: ${errorText(error)}`);
  }
}

async function answerWith(response: ServerResponse, make: () => Promise<string>): Promise<void> {
  try {
    const json = await make();
    response.writeHead(200, JSON_TYPE).end(json);
  } catch (error) {
    refuse(response, 502, `etcd cannot be read: ${errorText(error)}`);
  }
}

function answerReport(response: ServerResponse, report: Report): void {
  if (typeof report === 'string') refuse(response, 404, report);
  else void answerWith(response, () => report.get());
}

const LOCK = '/api/locks/';

function targetOf(url: string): { readonly path: string; readonly query: URLSearchParams } {
  const at = url.includes('?') ? url.indexOf('?') : url.length;
  return { path: url.slice(0, at), query: new URLSearchParams(url.slice(at)) };
}

function decoded(text: string): string | undefined {
  try {
    return decodeURIComponent(text);
  } catch {
    return undefined;
  }
}

function refuse(response: ServerResponse, status: number, why: string): void {
  response.writeHead(status, { 'Content-Type': 'text/plain; charset=utf-8' }).end(`${why}\n`);
}
