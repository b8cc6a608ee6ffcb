import { once } from 'node:events';
import { createServer as createHttpsServer, type ServerOptions } from 'node:https';
import { type AddressInfo, connect, createServer, type Server, type Socket } from 'node:net';
import { onTestFinished } from 'vitest';
import { ANSWER_HEADERS, got } from './v2-answers.ts';

export interface TlsServer {
  readonly port: number;
  readonly url: string;
  /** Connections accepted so far, including failed ones. */
  readonly connections: number;
  /** Requests received through TLS. */
  readonly requests: number;
}

/** Answers every request received through TLS: a POST like an append, others like a read. */
export async function serveTls(options: ServerOptions): Promise<TlsServer> {
  let requests = 0;
  const server = createHttpsServer(options, ({ method, url = '' }, response) => {
    requests += 1;
    const key = url.replace(/^\/v2\/keys/, '');
    response.writeHead(200, ANSWER_HEADERS).end(JSON.stringify(got(method === 'POST' ? `${key}/4` : key)));
  });
  return listen(server, () => requests);
}

/** Answers the handshake of each connection with these bytes, then closes the connection. */
export const serveBytes = (bytes: Uint8Array): Promise<TlsServer> =>
  listen(
    createServer((socket) => {
      socket.once('data', () => socket.end(bytes));
    }),
    () => 0,
  );

/** Accepts requests through TLS, and answers them with bytes that are not TLS. */
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

/** The alert a TLS server sends when it aborts a handshake; RFC 8446, section 6 lists the numbers. */
export const alert = (number: number): Uint8Array => Uint8Array.of(0x15, 3, 3, 0, 2, 2, number);

/** Starts the server; the end of the test stops it. */
async function listen(server: Server, requests: () => number): Promise<TlsServer> {
  const sockets = new Set<Socket>();
  let connections = 0;
  server.on('connection', (socket) => {
    connections += 1;
    sockets.add(socket);
    socket.on('close', () => sockets.delete(socket));
    // The tests make clients disconnect.
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
