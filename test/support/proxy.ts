import { once } from 'node:events';
import http, { type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import { text } from 'node:stream/consumers';
import { finished, pipeline } from 'node:stream/promises';
import { Milestones, type Stage } from './milestones.ts';

export interface ProxiedRequest {
  readonly method: string;
  readonly path: string;
  readonly query: URLSearchParams;
  readonly body: string;
  /** etcd's status code, once it has answered. */
  status?: number;
}

export type Action =
  | 'forward'
  /** Forwards, waits for etcd's whole answer, then destroys the client's socket instead of answering. */
  | { swallow: true }
  /** Forwards once this resolves, even if the client has disconnected; `cut` destroys its socket at once. */
  | { hold: Promise<unknown>; cut?: true }
  /** Answers with `status` and `body` as JSON at once; forwards once `late` resolves, and discards etcd's answer. */
  | { late: Promise<unknown>; status: number; body: unknown }
  /** Forwards at once; returns etcd's answer once this resolves. */
  | { answerAfter: Promise<unknown> }
  /** Neither forwards nor answers. */
  | { silent: true }
  /** Destroys the client's socket at once. */
  | { refuse: true };

/** The first rule that returns an action decides; if none does, the request is forwarded. */
export type Rule = (request: ProxiedRequest) => Action | undefined;

export interface EtcdProxy {
  readonly url: string;
  readonly requests: readonly ProxiedRequest[];
  /** Requests that etcd has not answered and the client has not aborted. */
  readonly open: ReadonlySet<ProxiedRequest>;
  readonly openSockets: number;
  /** Adds a rule; returns a function that removes it. */
  intercept(rule: Rule): () => void;
  /** Waits for the next matching request that reaches the stage after this call. */
  next(match: (request: ProxiedRequest) => boolean, stage: Stage): Promise<ProxiedRequest>;
  stop(): Promise<void>;
}

/** Starts a proxy for one etcd member that drops, delays or breaks requests by rules. */
export async function startProxy(target: string): Promise<EtcdProxy> {
  const sockets = new Set<Socket>();
  const rules = new Set<Rule>();
  const requests: ProxiedRequest[] = [];
  const open = new Set<ProxiedRequest>();
  const milestones = new Milestones<ProxiedRequest>();
  const stopped = new AbortController();
  const turns = new WeakMap<Socket, Promise<void>>();

  const server = http.createServer((incoming, outgoing) => {
    // Like etcd, handle pipelined requests of one connection strictly one after the other.
    const turn = (turns.get(incoming.socket) ?? Promise.resolve()).then(() => handle(incoming, outgoing));
    turns.set(incoming.socket, turn);
  });
  server.keepAliveTimeout = 0;
  server.on('connection', (socket) => {
    sockets.add(socket);
    socket.on('close', () => sockets.delete(socket));
  });

  async function handle(incoming: IncomingMessage, outgoing: ServerResponse): Promise<void> {
    let request: ProxiedRequest | undefined;
    try {
      request = await read(incoming);
      requests.push(request);
      open.add(request);
      const action = decide(request);
      milestones.reach(request, 'arrived');
      await perform(action, request, incoming, outgoing);
    } catch {
      // The client or etcd closed its connection: close the other one too.
      incoming.socket.destroy();
    } finally {
      if (request) open.delete(request);
    }
  }

  function decide(request: ProxiedRequest): Action {
    for (const rule of rules) {
      const action = rule(request);
      if (action !== undefined) return action;
    }
    return 'forward';
  }

  async function perform(
    action: Action,
    request: ProxiedRequest,
    incoming: IncomingMessage,
    outgoing: ServerResponse,
  ): Promise<void> {
    if (action === 'forward') {
      await relay(request, incoming, outgoing, clientGone(outgoing));
    } else if ('hold' in action) {
      if (action.cut) incoming.socket.destroy();
      await action.hold;
      await relay(request, incoming, outgoing, stopped.signal);
    } else if ('late' in action) {
      // Later requests must not wait for `late` on this connection.
      outgoing.writeHead(action.status, { connection: 'close' }).end(JSON.stringify(action.body));
      await action.late;
      await text(await ask(request, incoming, stopped.signal));
      answered(request);
    } else if ('answerAfter' in action) {
      const answer = await ask(request, incoming, clientGone(outgoing));
      const body = await text(answer);
      answered(request);
      await action.answerAfter;
      outgoing.writeHead(answer.statusCode ?? 502, endToEnd(answer)).end(body);
    } else if ('swallow' in action) {
      const answer = await ask(request, incoming, stopped.signal);
      await text(answer);
      answered(request);
      incoming.socket.destroy();
    } else if ('refuse' in action) {
      incoming.socket.destroy();
    } else {
      await finished(outgoing);
    }
  }

  /** Streams headers and body as they arrive, as a long poll needs. */
  async function relay(
    request: ProxiedRequest,
    incoming: IncomingMessage,
    outgoing: ServerResponse,
    signal: AbortSignal,
  ): Promise<void> {
    const answer = await ask(request, incoming, signal);
    if (outgoing.destroyed) {
      await text(answer);
    } else {
      outgoing.writeHead(answer.statusCode ?? 502, endToEnd(answer));
      outgoing.flushHeaders();
      answer.once('end', () => answered(request));
      await pipeline(answer, outgoing);
      return;
    }
    answered(request);
  }

  async function ask(
    request: ProxiedRequest,
    incoming: IncomingMessage,
    signal: AbortSignal,
  ): Promise<IncomingMessage> {
    stopped.signal.throwIfAborted();
    const { method = 'GET', url = '/', headers } = incoming;
    const upstream = http.request(new URL(url, target), {
      method,
      headers: { ...headers, connection: 'close' },
      signal,
    });
    upstream.end(request.body, () => milestones.reach(request, 'forwarded'));
    const [answer] = (await once(upstream, 'response')) as [IncomingMessage];
    // An abort after the response headers may emit another error.
    upstream.on('error', () => {});
    request.status = answer.statusCode ?? 0;
    milestones.reach(request, 'headers');
    return answer;
  }

  function answered(request: ProxiedRequest): void {
    open.delete(request);
    milestones.reach(request, 'answered');
  }

  function clientGone(outgoing: ServerResponse): AbortSignal {
    const gone = new AbortController();
    outgoing.once('close', () => gone.abort());
    if (outgoing.destroyed) gone.abort();
    return gone.signal;
  }

  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    requests,
    open,
    get openSockets() {
      return sockets.size;
    },
    intercept(rule) {
      rules.add(rule);
      return () => rules.delete(rule);
    },
    next: (match, stage) => milestones.next(match, stage),
    async stop() {
      stopped.abort();
      const closed = once(server, 'close');
      server.close();
      for (const socket of sockets) socket.destroy();
      await closed;
      // Their own 'close' events are emitted later.
      sockets.clear();
    },
  };
}

async function read(incoming: IncomingMessage): Promise<ProxiedRequest> {
  const { pathname, searchParams } = new URL(incoming.url ?? '/', 'http://proxy');
  return { method: incoming.method ?? 'GET', path: pathname, query: searchParams, body: await text(incoming) };
}

// Hop-by-hop headers are not forwarded.
function endToEnd(answer: IncomingMessage): string[] {
  const pairs = answer.rawHeaders.flatMap((name, index) =>
    index % 2 === 0 && !/^(connection|keep-alive|transfer-encoding)$/i.test(name)
      ? [[name, answer.rawHeaders[index + 1] ?? '']]
      : [],
  );
  return pairs.flat();
}
