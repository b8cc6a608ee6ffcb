/** Where a command listens, and with which certificates: its flags, and what they mean. */
import type { Command } from 'commander';
import type { BridgeTls } from '../../../server/bridge/options.ts';
import type { ListeningOptions } from '../../../server/listening.ts';
import { UsageError } from '../../exit-codes.ts';
import { pemFile, readFirstLine } from '../../files.ts';

/** The flags for HTTPS. */
export interface TlsFlags {
  readonly listenCert?: string;
  readonly listenKey?: string;
  readonly listenKeyPassphraseFile?: string;
  readonly listenCa?: string;
}

/** @param what the server, such as "bridge" */
export const addTlsFlags = (command: Command, what: string): Command =>
  command
    .option('--listen-cert <file>', `PEM file with the ${what}'s certificate; the ${what} then serves HTTPS`)
    .option('--listen-key <file>', 'PEM file with the private key of that certificate')
    .option('--listen-key-passphrase-file <file>', 'file with the passphrase of that private key in its first line')
    .option('--listen-ca <file>', 'PEM file with CA certificates: each client must have a certificate of one of them');

/** @throws {UsageError} if flags are missing, or a file cannot be read */
export function tlsOf({
  listenCert,
  listenKey,
  listenKeyPassphraseFile: file,
  listenCa,
}: TlsFlags): BridgeTls | undefined {
  if (file !== undefined && listenKey === undefined)
    throw new UsageError('--listen-key-passphrase-file requires --listen-key');
  if (listenCert === undefined || listenKey === undefined) {
    if (listenCert === undefined && listenKey === undefined && listenCa === undefined) return undefined;
    throw new UsageError('to serve HTTPS, both --listen-cert and --listen-key are needed');
  }
  const ca = listenCa === undefined ? {} : { caFile: pemFile(listenCa, '--listen-ca') };
  const secret =
    file === undefined ? {} : { passphrase: readFirstLine(file, '--listen-key-passphrase-file', 'passphrase') };
  const own = { certFile: pemFile(listenCert, '--listen-cert'), keyFile: pemFile(listenKey, '--listen-key') };
  return { ...own, ...secret, ...ca };
}

/** Returns the address and the port; undefined if the text is something else. */
export function addressOf(listen: string): Required<Pick<ListeningOptions, 'host' | 'port'>> | undefined {
  const [, host, port] = /^\[?([^\]]+?)\]?:(\d+)$/.exec(listen) ?? [];
  return host === undefined || listen.startsWith('unix:') ? undefined : { host, port: Number(port) };
}
