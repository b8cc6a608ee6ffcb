import { once } from 'node:events';
import { type AddressInfo, createServer, type Socket } from 'node:net';
import { until } from './until.ts';

export type TcpHandler = (socket: Socket, request: string) => void | Promise<void>;

export interface TcpServer {
  readonly url: string;
  readonly port: number;
  /** Every request so far: its raw head and body. */
  readonly requests: readonly string[];
  readonly openSockets: number;
  /** Waits for the next request that no earlier call has returned. */
  nextRequest(): Promise<string>;
  stop(): Promise<void>;
}

/** Starts a scripted server, for what nock cannot do. Calls the handler once per complete request; it may write any bytes. */
export async function startTcpServer(
  handler: TcpHandler,
  { host = '127.0.0.1', port: wanted = 0 } = {},
): Promise<TcpServer> {
  const sockets = new Set<Socket>();
  const requests: string[] = [];
  let returned = 0;
  const server = createServer((socket) => {
    sockets.add(socket);
    let unread = '';
    socket.on('close', () => sockets.delete(socket));
    // The tests make clients reset their connections.
    socket.on('error', () => {});
    socket.setEncoding('latin1').on('data', (text: string) => {
      unread += text;
      for (let length = requestLength(unread); length !== undefined; length = requestLength(unread)) {
        const request = unread.slice(0, length);
        unread = unread.slice(length);
        requests.push(request);
        void handler(socket, request);
      }
    });
  });
  server.listen(wanted, host);
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  return {
    url: `http://${host}:${port}`,
    port,
    requests,
    get openSockets() {
      return sockets.size;
    },
    async nextRequest() {
      const index = returned++;
      await until(
        () => requests.length,
        (count) => count > index,
      );
      return requests[index] ?? '';
    },
    async stop() {
      const closed = once(server, 'close');
      server.close();
      for (const socket of sockets) socket.destroy();
      await closed;
      // Their own 'close' events are emitted later.
      sockets.clear();
    },
  };
}

/** Returns the length of the request at the beginning of the text; undefined while it is incomplete. Supports only Content-Length, because our client never sends chunks. */
export function requestLength(text: string): number | undefined {
  const head = text.indexOf('\r\n\r\n');
  if (head < 0) return undefined;
  const body = Number(/\r\ncontent-length: *(\d+)/i.exec(text.slice(0, head))?.[1] ?? 0);
  const length = head + 4 + body;
  return text.length >= length ? length : undefined;
}

/** A whole HTTP answer as raw bytes. */
export function httpAnswer(status: number, headers: Record<string, string>, body: string): string {
  const all = { 'content-length': String(Buffer.byteLength(body)), ...headers };
  const lines = Object.entries(all).map(([name, value]) => `${name}: ${value}\r\n`);
  return `HTTP/1.1 ${status} Scripted\r\n${lines.join('')}\r\n${body}`;
}

/** Never answers. */
export const silent: TcpHandler = () => {};

/** Ends the connection without a byte. */
export const refuse: TcpHandler = (socket) => {
  socket.destroy();
};

export function answer(raw: string): TcpHandler {
  return (socket) => {
    socket.write(raw);
  };
}

/** Sends these bytes, then closes the connection: in mid-body if there are fewer bytes than the Content-Length. */
export function answerThenCut(raw: string): TcpHandler {
  return (socket) => {
    socket.write(raw, () => socket.destroy());
  };
}

export function answerAfter(turn: Promise<unknown>, raw: string): TcpHandler {
  return async (socket) => {
    await turn;
    if (socket.writable) socket.write(raw);
  };
}

/** Passes the first request to the first handler and so on; the last handler gets all later requests. */
export function inTurn(...handlers: [TcpHandler, ...TcpHandler[]]): TcpHandler {
  let count = 0;
  return (socket, request) => handlers[Math.min(count++, handlers.length - 1)]?.(socket, request);
}
