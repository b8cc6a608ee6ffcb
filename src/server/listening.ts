import { once } from 'node:events';
import { chmodSync, lstatSync, unlinkSync } from 'node:fs';
import { Server as HttpsServer } from 'node:https';
import { type AddressInfo, connect } from 'node:net';
import { checkInteger, show } from '../base/checks.ts';
import type { WebServer } from './front/http-server.ts';

/** Where a server listens. */
export interface Listening {
  /** TCP port; 0: any free port. */
  readonly port: number;
  /** IP address or host name. */
  readonly host: string;
  /** Path of a Unix socket, instead of a port. */
  readonly socket: string | undefined;
  /** Permissions of the socket, such as 0o660. Undefined: as the umask of the process has them. */
  readonly socketMode: number | undefined;
}

/** Options that say where a server listens. */
export interface ListeningOptions {
  /** TCP port to listen on. Default 0: any free port. */
  readonly port?: number | undefined;
  /**
   * IP address or host name to listen on. Default `127.0.0.1`: only this machine can connect.
   *
   * A request's `Host` header must contain an IP address, `localhost`, this name, or that of an advertised URL; otherwise it gets
   * status 403.
   */
  readonly host?: string | undefined;
  /**
   * Path of a Unix socket to listen on, such as `/run/locks.sock`; instead of `port` and `host`. A socket that nobody answers is replaced.
   * The end of the server removes it.
   */
  readonly socket?: string | undefined;
  /** Who may connect to `socket`: its permissions, such as `0o660`. Default: by the umask of the process, usually only its user. */
  readonly socketMode?: number | undefined;
}

/**
 * Checks where to listen, and fills in the defaults.
 * @throws {TypeError | RangeError} if an option is invalid; the message contains the value
 */
export function checkListening({ port, host, socket, socketMode }: ListeningOptions): Listening {
  if (socket !== undefined && (port !== undefined || host !== undefined))
    throw new TypeError('socket cannot be used together with port or host');
  if (socket !== undefined && (typeof socket !== 'string' || socket === '' || socket.includes('\0')))
    throw new RangeError(`socket must be a path such as "/run/locks.sock", got ${show(socket)}`);
  if (socketMode !== undefined && socket === undefined) throw new TypeError('socketMode requires socket');
  if (socketMode !== undefined) checkInteger('socketMode', socketMode, 0);
  if (socketMode !== undefined && socketMode > 0o777)
    throw new RangeError(`socketMode must be at most 0o777, got 0o${socketMode.toString(8)}`);
  if (port !== undefined) checkInteger('port', port, 0);
  if (port !== undefined && port > 65_535) throw new RangeError(`port must be at most 65535, got ${port}`);
  if (host !== undefined && (typeof host !== 'string' || host === ''))
    throw new TypeError(`host must be an IP address or a host name, got ${show(host)}`);
  return { port: port ?? 0, host: host ?? '127.0.0.1', socket, socketMode };
}

/**
 * Maximum number of connections that the system accepts while this process is busy. The system's own limit may be lower. Beyond
 * the limit, a client's system retries the connection only after a second.
 */
const BACKLOG = 4096;

/**
 * Starts listening. Resolves when the server accepts connections. Replaces a Unix socket that nobody answers.
 * @throws the system's error if it cannot listen there
 */
export async function listen(server: WebServer, { port, host, socket, socketMode }: Listening): Promise<void> {
  if (socket === undefined) server.listen(port, host, BACKLOG);
  else {
    if (await isLeft(socket)) unlinkSync(socket);
    server.listen({ path: socket, backlog: BACKLOG });
    // Before anybody can connect: Node binds at once, and reports it later.
    if (server.listening && socketMode !== undefined) chmodSync(socket, socketMode);
  }
  await once(server, 'listening');
}

/** Whether this is a socket of a process that has ended. False if somebody answers, or the file is something else. */
async function isLeft(path: string): Promise<boolean> {
  if (!lstatSync(path, { throwIfNoEntry: false })?.isSocket()) return false;
  const socket = connect(path);
  try {
    await once(socket, 'connect');
    return false;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'ECONNREFUSED';
  } finally {
    socket.destroy();
  }
}

/** Returns a URL that a client can connect to. The loopback address replaces an address that means "all addresses". */
export function urlOf(server: WebServer): string {
  const at = server.address() as AddressInfo | string;
  if (typeof at === 'string') return `unix://${at}`;
  const { address, family, port } = at;
  const host = { '0.0.0.0': '127.0.0.1', '::': '::1' }[address] ?? address;
  return `${server instanceof HttpsServer ? 'https' : 'http'}://${family === 'IPv6' ? `[${host}]` : host}:${port}`;
}
