import type { Socket } from 'node:net';
import { inspect } from 'node:util';
import { onTestFinished } from 'vitest';
import { V2Client } from '../../src/v2/client.ts';
import type { V2ClientOptions } from '../../src/v2/options.ts';
import { freePorts } from './ports.ts';
import { startTcpServer, type TcpHandler, type TcpServer } from './tcp-server.ts';
import { until } from './until.ts';

/** Returns a client that asks its endpoints in the order given; the end of the test closes it and ignores errors. */
export function connect(options: V2ClientOptions): V2Client {
  const client = new V2Client({ randomizeEndpoints: false, ...options });
  onTestFinished(() => client.close({ timeout: 0 }).catch(() => {}));
  return client;
}

/** Starts a scripted server; the end of the test stops it. */
export async function serve(handler: TcpHandler): Promise<TcpServer> {
  const server = await startTcpServer(handler);
  onTestFinished(() => server.stop());
  return server;
}

/**
 * Starts a server that sends `head` to each request and then nothing. `allClosed` waits until the sockets of all requests are
 * closed. (undici reconnects after an abort, so the number of open sockets proves nothing.)
 */
export async function serveSilence(head = ''): Promise<TcpServer & { allClosed(): Promise<unknown> }> {
  const asked = new Set<Socket>();
  const server = await serve((socket) => {
    asked.add(socket);
    socket.write(head);
  });
  const allClosed = () =>
    until(
      () => [...asked].filter((socket) => !socket.destroyed).length,
      (open) => open === 0,
    );
  return Object.assign(server, { allClosed });
}

/** Returns a URL on which no server listens. */
export async function closedEndpoint(): Promise<string> {
  const [port] = await freePorts(1);
  return `http://127.0.0.1:${port}`;
}

/** Returns the error a call rejected with; throws unless it is of exactly this class. */
export async function rejection<E extends Error>(
  call: Promise<unknown>,
  ErrorClass: abstract new (...args: never[]) => E,
): Promise<E> {
  const error = await call.then(
    (value) => new Error(`resolved to ${inspect(value)}`),
    (reason: unknown) => reason,
  );
  if (error instanceof ErrorClass && error.constructor === ErrorClass) return error;
  throw new Error(`not rejected with ${ErrorClass.name}`, { cause: error });
}
