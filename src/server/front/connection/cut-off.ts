import type { IncomingMessage } from 'node:http';
import type { Socket } from 'node:net';
import { TLSSocket } from 'node:tls';

/** Closes a connection at once; without TLS by a reset, as etcd does. */
export const cutOff = (socket: Socket): void =>
  void (socket instanceof TLSSocket ? socket.destroy() : socket.resetAndDestroy());

/** Bytes that etcd reads to detect the protocol of a new connection. etcd resets the connection if its first line is longer. */
const LONGEST_FIRST_LINE = 4096;

/** Returns whether etcd would reset a new connection that starts with this request. */
export const isCutOff = ({ method, url }: IncomingMessage): boolean =>
  `${method} ${url} HTTP/1.1\r\n`.length > LONGEST_FIRST_LINE;
