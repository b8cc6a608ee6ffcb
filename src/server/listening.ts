import { Server as HttpsServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { checkInteger, show } from '../base/checks.ts';
import type { WebServer } from './front/http-server.ts';

/** Where a server listens. */
export interface Listening {
  /** TCP port; 0: any free port. */
  readonly port: number;
  /** IP address or host name. */
  readonly host: string;
}

/**
 * Checks the port and the host.
 * @throws {TypeError | RangeError} if one of the two is invalid; the message contains the value
 */
export function checkListening({ port, host }: Listening): void {
  checkInteger('port', port, 0);
  if (port > 65_535) throw new RangeError(`port must be at most 65535, got ${port}`);
  if (typeof host !== 'string' || host === '')
    throw new TypeError(`host must be an IP address or a host name, got ${show(host)}`);
}

/** Returns a URL that a client can connect to. The loopback address replaces an address that means "all addresses". */
export function urlOf(server: WebServer): string {
  const { address, family, port } = server.address() as AddressInfo;
  const host = { '0.0.0.0': '127.0.0.1', '::': '::1' }[address] ?? address;
  return `${server instanceof HttpsServer ? 'https' : 'http'}://${family === 'IPv6' ? `[${host}]` : host}:${port}`;
}
