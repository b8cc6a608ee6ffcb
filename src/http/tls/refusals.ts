import type { Socket } from 'node:net';
import type { TLSSocket } from 'node:tls';
import { errors } from 'undici';
import type { Address } from '../checks/endpoints.ts';
import type { TlsSettings } from './settings.ts';

/** OpenSSL's names of alerts about the client certificate. Other alerts, such as "internal error", may be temporary. */
const REFUSED = /_ALERT_(\w*CERTIFICATE\w*|UNKNOWN_CA|ACCESS_DENIED)$/;
/** No version or cipher in common, or no TLS at all. */
const NO_TLS =
  /_(ALERT_HANDSHAKE_FAILURE|ALERT_PROTOCOL_VERSION|ALERT_INSUFFICIENT_SECURITY|UNSUPPORTED_PROTOCOL|WRONG_VERSION_NUMBER|PACKET_LENGTH_TOO_LONG)$/;

/** A failed connection. */
export interface Failure {
  readonly error: unknown;
  /** Whether it failed before a request could be sent. */
  readonly connecting: boolean;
  /** Whether it failed because the server's certificate is not trusted. */
  readonly distrusted: boolean;
}

/**
 * Returns why TLS failed if a retry would fail, too; else undefined. After such a failure the server has carried out no request.
 * With TLS 1.3 it may receive one before it checks the client certificate, but reads that request only after the check.
 */
export function whyRefused({ error, connecting, distrusted }: Failure, { cert }: TlsSettings): string | undefined {
  if (distrusted) return "the server's certificate is not trusted";
  const code = codeOf(error) ?? '';
  if (REFUSED.test(code))
    return cert ? 'the server refuses the client certificate' : 'the server asks for a client certificate';
  return connecting && NO_TLS.test(code) ? 'the server uses no TLS, or no TLS version or cipher in common' : undefined;
}

/**
 * Returns a question to add to the message when a connection was closed without any answer. etcd does so if it gets TLS where
 * it expects clear text, and the other way round. Also explains the refusal of a Unix socket.
 */
export function hint({ error, connecting }: Failure, { origin, socketPath }: Address): string {
  if (socketPath !== undefined && codeOf(error) === 'ECONNREFUSED')
    return '; no server listens there, or the file is no socket';
  if (origin.startsWith('https:'))
    return connecting && codeOf(error) === 'ECONNRESET' ? '; does the server use TLS?' : '';
  return error instanceof errors.SocketError && error.socket?.bytesRead === 0 ? '; does the server expect https?' : '';
}

/** Whether the other side closed the connection. */
export function isClosed(error: Error): boolean {
  return error instanceof errors.SocketError || ['ECONNRESET', 'EPIPE'].includes(codeOf(error) ?? '');
}

/** Whether the handshake failed because the server's certificate is not trusted. */
export const isDistrusted = (socket: Socket): boolean => Boolean((socket as TLSSocket).authorizationError);

/**
 * Makes requests fail with the error of a TLS alert. By default, Node leaves the socket open after an alert, and requests
 * fail with the end of the connection that follows.
 */
export function failOnAlert(socket: Socket): void {
  socket.once('error', (error) => socket.destroy(error));
}

/** Returns an error's message with its code. */
export function describe(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  const code = codeOf(error);
  // OpenSSL's messages contain addresses and source files; `reason` is the readable part.
  const words = code?.startsWith('ERR_SSL_') && 'reason' in error ? String(error.reason) : error.message;
  const text = words || code || error.name;
  return code && !text.includes(code) ? `${text} (${code})` : text;
}

function codeOf(error: unknown): string | undefined {
  return error instanceof Error && 'code' in error && typeof error.code === 'string' ? error.code : undefined;
}
