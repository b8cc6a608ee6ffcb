import { once } from 'node:events';
import type { IncomingMessage, Server } from 'node:http';
import { ServerWithoutUpgrades } from './upgrades.ts';

/** As Go's server has it. Only the first line of a connection has to be shorter, see {@link isCutOff}. */
const LONGEST_HEADERS = 2 ** 20;

/**
 * A server that is as patient as etcd: a connection may be idle for as long as its client likes, before its first
 * request too, and a request may come as slowly as it likes. (Node's own limits are 5, 60 and 300 seconds.)
 */
export const createHttpServer = (): Server =>
  new ServerWithoutUpgrades({
    keepAliveTimeout: 0,
    headersTimeout: 0,
    requestTimeout: 0,
    maxHeaderSize: LONGEST_HEADERS,
  });

/** Bytes etcd looks at to see what a new connection speaks: one whose first line goes on beyond them is reset. */
const LONGEST_FIRST_LINE = 4096;

/** Whether etcd would cut a connection off that begins with this request. */
export const isCutOff = ({ method, url }: IncomingMessage): boolean =>
  `${method} ${url} HTTP/1.1\r\n`.length > LONGEST_FIRST_LINE;

/** Connections the system takes up before this process does, if it grants that many. A client beyond them tries again only after a second. */
const BACKLOG = 4096;

/** @throws the system's error when it cannot listen there */
export async function listen(server: Server, port: number, host: string): Promise<void> {
  server.listen(port, host, BACKLOG);
  await once(server, 'listening');
}
