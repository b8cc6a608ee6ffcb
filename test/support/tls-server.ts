import { once } from 'node:events';
import { createServer as createHttpsServer, type ServerOptions } from 'node:https';
import { type AddressInfo, connect, createServer, type Server, type Socket } from 'node:net';
import { onTestFinished } from 'vitest';
import { ANSWER_HEADERS, got } from './v2-answers.ts';

export interface TlsServer {
  readonly port: number;
  readonly url: string;
  /** How many were made so far, whatever became of them. */
  readonly connections: number;
  /** How many came through TLS. */
  readonly requests: number;
}

/** Answers every request that comes through TLS as if it were a read, or an append where it is a POST. */
export async function serveTls(options: ServerOptions): Promise<TlsServer> {
  let requests = 0;
  const server = createHttpsServer(options, ({ method, url = '' }, response) => {
    requests += 1;
    const key = url.replace(/^\/v2\/keys/, '');
    response.writeHead(200, ANSWER_HEADERS).end(JSON.stringify(got(method === 'POST' ? `${key}/4` : key)));
  });
  return listen(server, () => requests);
}

/** Answers the first bytes of each connection, a handshake, with these and no more. */
export const serveBytes = (bytes: Uint8Array): Promise<TlsServer> =>
  listen(
    createServer((socket) => {
      socket.once('data', () => socket.end(bytes));
    }),
    () => 0,
  );

/** Takes requests through TLS, and answers them with bytes that are none of it. */
export async function serveGarbage(options: ServerOptions): Promise<TlsServer> {
  const behind = await listen(
    createHttpsServer(options, () => garble()),
    () => 0,
  );
  let garble = () => {};
  let requests = 0;
  const front = createServer((socket) => {
    const upstream = connect(behind.port, '127.0.0.1');
    socket.pipe(upstream).pipe(socket);
    garble = () => {
      requests += 1;
      socket.write('no TLS');
    };
  });
  return listen(front, () => requests);
}

/** What a TLS server says when it breaks a handshake off; the numbers are in RFC 8446, section 6. */
export const alert = (number: number): Uint8Array => Uint8Array.of(0x15, 3, 3, 0, 2, 2, number);

/** It is stopped when the test ends. */
async function listen(server: Server, requests: () => number): Promise<TlsServer> {
  const sockets = new Set<Socket>();
  let connections = 0;
  server.on('connection', (socket) => {
    connections += 1;
    sockets.add(socket);
    socket.on('close', () => sockets.delete(socket));
    // A client that goes away is what these tests are about.
    socket.on('error', () => {});
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  onTestFinished(async () => {
    const closed = once(server, 'close');
    server.close();
    for (const socket of sockets) socket.destroy();
    await closed;
  });
  const { port } = server.address() as AddressInfo;
  return {
    port,
    url: `https://127.0.0.1:${port}`,
    get connections() {
      return connections;
    },
    get requests() {
      return requests();
    },
  };
}
