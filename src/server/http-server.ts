import { once } from 'node:events';
import { createServer, type Server } from 'node:http';

/** As Go's server has it: a long value may stand in the query of a removal. */
const LONGEST_HEADERS = 2 ** 20;

/**
 * A server that is as patient as etcd: a connection may be idle for as long as its client likes, before its first
 * request too, and a request may come as slowly as it likes. (Node's own limits are 5, 60 and 300 seconds.)
 */
export const createHttpServer = (): Server =>
  createServer({ keepAliveTimeout: 0, headersTimeout: 0, requestTimeout: 0, maxHeaderSize: LONGEST_HEADERS });

/** Connections the system takes up before this process does, if it grants that many. A client beyond them tries again only after a second. */
const BACKLOG = 4096;

/** @throws the system's error when it cannot listen there */
export async function listen(server: Server, port: number, host: string): Promise<void> {
  server.listen(port, host, BACKLOG);
  await once(server, 'listening');
}
