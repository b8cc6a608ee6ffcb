import { createServer } from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import type { Socket } from 'node:net';
import type { TlsOptions } from 'node:tls';
import type { TlsSettings } from '../../http/tls/settings.ts';
import { type Budget, processBudget } from '../budget.ts';
import { type ConnectionLimits, limitConnections } from './connection/connections.ts';
import { ignoreUpgrades, type WebServer } from './connection/upgrades.ts';

export type { WebServer };

/** Limits and TLS settings of a server. */
export interface HttpServerOptions extends ConnectionLimits {
  /** Maximum size of request headers in bytes. Default 1 MiB, as in Go's server. */
  readonly maxHeaderSize?: number;
  /** Maximum seconds until a request has arrived completely; 0: no limit. Default 0, as in etcd. */
  readonly requestTimeout?: number;
  /** Maximum seconds for a TLS handshake. Default 10. */
  readonly handshakeTimeout?: number;
  /** For HTTPS: certificate and private key. With `ca`, each client must have a certificate of one of these authorities. */
  readonly tls?: TlsSettings | undefined;
  /** Memory for bytes behind an offer to upgrade. Default: that of the process. */
  readonly budget?: Budget;
}

/**
 * Creates a server whose connections may stay idle: without `idleTimeout` after a request, and without `requestTimeout` even before
 * their first one. By default, Node would close them after 5 or 60 seconds.
 */
export function createHttpServer(options: HttpServerOptions = {}): WebServer {
  const { maxHeaderSize = 2 ** 20, requestTimeout = 0, handshakeTimeout = 10, tls, budget = processBudget } = options;
  const limits = {
    // TCP keep-alive, as in etcd: it closes the connection of a client whose host has disappeared.
    keepAlive: true,
    keepAliveInitialDelay: 30_000,
    keepAliveTimeout: 0,
    headersTimeout: 0,
    requestTimeout: requestTimeout * 1000,
    maxHeaderSize,
    requireHostHeader: false, // the front refuses such a request in its turn
  };
  const server = tls
    ? createTlsServer({
        ...limits,
        ...(tls as TlsOptions),
        requestCert: tls.ca !== undefined,
        handshakeTimeout: handshakeTimeout * 1000,
      })
    : createServer(limits);
  limitConnections(server, options);
  // A client that closes its half still gets its answers, as from etcd.
  Object.assign(server, { httpAllowHalfOpen: true });
  server.on('checkExpectation', (request, response) => server.emit('request', request, response));
  ignoreUpgrades(server, budget);
  if (tls) closeHandshakes(server);
  return server;
}

/** Makes `closeAllConnections` also close the connections whose TLS handshake is not complete. Node does not count these. */
function closeHandshakes(server: WebServer): void {
  const sockets = new Set<Socket>();
  const closeAll = server.closeAllConnections.bind(server);
  server.on('connection', (socket: Socket) => {
    sockets.add(socket);
    socket.once('close', () => sockets.delete(socket));
  });
  server.closeAllConnections = () => {
    closeAll();
    for (const socket of sockets) socket.destroy();
  };
}
