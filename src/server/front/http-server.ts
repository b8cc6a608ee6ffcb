import { once } from 'node:events';
import type { IncomingMessage, Server } from 'node:http';
import { ServerWithoutUpgrades } from './upgrades.ts';

/** Maximum size of request headers in bytes, as in Go's server. The first request line of a connection must be shorter. */
const LONGEST_HEADERS = 2 ** 20;

/**
 * Creates a server without time limits, as etcd has none. A connection may stay idle, even before its first request, and a
 * request may arrive slowly. Node's defaults are 5, 60 and 300 seconds.
 */
export const createHttpServer = (): Server =>
  new ServerWithoutUpgrades({
    keepAliveTimeout: 0,
    headersTimeout: 0,
    requestTimeout: 0,
    maxHeaderSize: LONGEST_HEADERS,
  });

/** Bytes that etcd reads to detect the protocol of a new connection. etcd resets the connection if its first line is longer. */
const LONGEST_FIRST_LINE = 4096;

/** Returns whether etcd would reset a new connection that starts with this request. */
export const isCutOff = ({ method, url }: IncomingMessage): boolean =>
  `${method} ${url} HTTP/1.1\r\n`.length > LONGEST_FIRST_LINE;

/**
 * Maximum number of connections that the system accepts while this process is busy. The system's own limit may be lower. Beyond
 * the limit, a client's system retries the connection only after a second.
 */
const BACKLOG = 4096;

/**
 * Starts listening. Resolves when the server accepts connections.
 * @throws the system's error if it cannot listen on that host and port
 */
export async function listen(server: Server, port: number, host: string): Promise<void> {
  server.listen(port, host, BACKLOG);
  await once(server, 'listening');
}
