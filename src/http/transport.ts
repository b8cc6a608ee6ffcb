/** The only door to the network: all that this package sends goes through it. The simulation has a network in memory behind it. */
import type { Socket } from 'node:net';
import { buildConnector, Client, type Dispatcher } from 'undici';

/** Opens the sockets of a connection. */
export type Connector = buildConnector.connector;

/**
 * Returns the sender of requests to a member. It opens one connection at the first request, and another one when that was closed.
 * @param pipelining maximum number of requests that are sent without waiting for the answer to the first
 */
export const openTransport = (url: string, connect: Connector, pipelining: number): Dispatcher =>
  // undici's timeouts are off: every attempt has its own, and the body of a long poll comes long after the headers.
  new Client(url, { headersTimeout: 0, bodyTimeout: 0, connect, pipelining });

/** Returns what opens sockets with these options. */
export const connectorOf = (options: buildConnector.BuildOptions): Connector => buildConnector(options);

/** How to ask a proxy. */
export interface TunnelRequest {
  /** Opens the socket to the proxy. */
  readonly connect: Connector;
  readonly headers: Record<string, string>;
  /** Milliseconds to wait for the answer. */
  readonly timeout: number;
}

/** Asks a proxy for a tunnel to a host and port. Resolves to the status of its answer, and to the socket, which is a tunnel if that is 200. */
export async function requestTunnel(
  proxy: string,
  target: string,
  { connect, headers, timeout }: TunnelRequest,
): Promise<{ readonly socket: Socket; readonly status: number }> {
  const client = new Client(proxy, { headersTimeout: timeout, connect });
  try {
    const { socket, statusCode } = await client.connect({ path: target, headers });
    return { socket: socket as Socket, status: statusCode };
  } finally {
    // The socket is no longer the client's.
    await client.destroy();
  }
}
