import type { Socket } from 'node:net';
import type { TLSSocket } from 'node:tls';
import { errors } from 'undici';
import type { TlsSettings } from './options.ts';

/** Alerts about our certificate, as OpenSSL names them. Others, such as "internal error", may pass. */
const REFUSED = /_ALERT_(\w*CERTIFICATE\w*|UNKNOWN_CA|ACCESS_DENIED)$/;
/** No version or cipher in common, or no TLS at all. */
const NO_TLS =
  /_(ALERT_HANDSHAKE_FAILURE|ALERT_PROTOCOL_VERSION|ALERT_INSUFFICIENT_SECURITY|UNSUPPORTED_PROTOCOL|WRONG_VERSION_NUMBER|PACKET_LENGTH_TOO_LONG)$/;

/** A connection that failed. */
export interface Failure {
  readonly error: unknown;
  /** Before a request could be sent. */
  readonly connecting: boolean;
  /** Because we do not trust the other's certificate. */
  readonly distrusted: boolean;
}

/**
 * Why the two sides cannot come to terms, where more tries would not change that; else undefined. No request was carried
 * out then: in TLS 1.3 a server may get one before it judges our certificate, but reads it afterwards only.
 */
export function whyRefused({ error, connecting, distrusted }: Failure, { cert }: TlsSettings): string | undefined {
  if (distrusted) return 'its certificate is not trusted';
  const code = codeOf(error) ?? '';
  if (REFUSED.test(code)) return cert ? 'it refuses our certificate' : 'it asks for a client certificate';
  return connecting && NO_TLS.test(code) ? 'it speaks no TLS that we do' : undefined;
}

/** What it may mean that a connection was closed without a word: etcd does so when asked in TLS for clear text, or the other way round. */
export function hint({ error, connecting }: Failure, url: string): string {
  if (url.startsWith('https:')) return connecting && codeOf(error) === 'ECONNRESET' ? '; does it speak TLS?' : '';
  return error instanceof errors.SocketError && error.socket?.bytesRead === 0 ? '; does it want https?' : '';
}

/** Whether the other side closed the connection. */
export function isClosed(error: Error): boolean {
  return error instanceof errors.SocketError || ['ECONNRESET', 'EPIPE'].includes(codeOf(error) ?? '');
}

/** Whether we broke the connection off because we do not trust the other's certificate. */
export const isDistrusted = (socket: Socket): boolean => Boolean((socket as TLSSocket).authorizationError);

/** Makes an alert the error that requests fail with. Node leaves the socket open then, and the end that follows would hide it. */
export function heedAlerts(socket: Socket): void {
  socket.once('error', (error) => socket.destroy(error));
}

/** The error in words, with its code. */
export function describe(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  const code = codeOf(error);
  // OpenSSL's messages name addresses and its source files; what it means is in the reason.
  const words = code?.startsWith('ERR_SSL_') && 'reason' in error ? String(error.reason) : error.message;
  const text = words || code || error.name;
  return code && !text.includes(code) ? `${text} (${code})` : text;
}

function codeOf(error: unknown): string | undefined {
  return error instanceof Error && 'code' in error && typeof error.code === 'string' ? error.code : undefined;
}
