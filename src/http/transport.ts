/** The only door to the network: all that this package sends goes through it. The simulation has a network in memory behind it. */
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
