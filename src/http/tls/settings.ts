import { X509Certificate } from 'node:crypto';
import { isIP } from 'node:net';
import { createSecureContext, type SecureContextOptions } from 'node:tls';
import { show } from '../../base/checks.ts';

/** One PEM text or several. */
export type Pem = string | Buffer | readonly (string | Buffer)[];

/** Whom to trust, and what to present. */
export interface TlsSettings {
  /** Certificate authorities to trust instead of Node's defaults. Certificates are always verified. */
  readonly ca?: Pem;
  /** Client certificate; requires `key`. */
  readonly cert?: Pem;
  /** Private key of the client certificate; requires `cert`. */
  readonly key?: Pem;
  /** Decrypts `key`; requires it. */
  readonly passphrase?: string;
  /**
   * Host name that the certificate of each member must be for, instead of the host of its URL. Also sent to the member, as TLS's server
   * name. For certificates that lack the address.
   */
  readonly serverName?: string;
}

/** Labels of a host name, with letters and digits at both ends. */
const HOST_NAME = /^(?=.{1,253}$)[a-z0-9_]([a-z0-9_-]{0,61}[a-z0-9_])?(\.[a-z0-9_]([a-z0-9_-]{0,61}[a-z0-9_])?)*$/i;

/**
 * Checks certificates, a private key and its passphrase, and a server name.
 * @throws {TypeError | RangeError} if one of them is invalid; the message never shows a private key or a passphrase
 */
export function checkTls({ ca, cert, key, passphrase, serverName }: TlsSettings): TlsSettings {
  if ((cert === undefined) !== (key === undefined))
    throw new TypeError(`cert and key must be given together, got only ${cert === undefined ? 'key' : 'cert'}`);
  if (passphrase !== undefined && key === undefined) throw new TypeError('passphrase requires key');
  if (passphrase !== undefined && (typeof passphrase !== 'string' || passphrase === ''))
    throw new TypeError(
      `passphrase must be a non-empty string, got ${passphrase === '' ? 'an empty one' : typeof passphrase}`,
    );
  if (ca !== undefined && !isCertificates(ca))
    throw new RangeError(`ca must be certificates as PEM text (not the path of a file), got ${showPem(ca)}`);
  if (serverName !== undefined) checkServerName(serverName);
  const verified = { ...(ca === undefined ? {} : { ca }), ...(serverName === undefined ? {} : { serverName }) };
  if (cert === undefined || key === undefined) return verified;
  const own = { cert, key, ...(passphrase === undefined ? {} : { passphrase }) };
  try {
    createSecureContext(own as SecureContextOptions);
  } catch (error) {
    throw new RangeError(complaint(error, own));
  }
  return { ...verified, ...own };
}

function checkServerName(name: unknown): void {
  if (typeof name === 'string' && isIP(name) !== 0)
    throw new RangeError(`serverName must be a host name, and not an IP address: TLS sends none, got ${show(name)}`);
  if (typeof name !== 'string' || !HOST_NAME.test(name))
    throw new RangeError(`serverName must be a host name such as "etcd.example.org", got ${show(name)}`);
}

/** Returns why a certificate and its key cannot be used. OpenSSL gives the same reason for a wrong and a missing passphrase. */
function complaint(error: unknown, { key, passphrase }: Pick<TlsSettings, 'key' | 'passphrase'>): string {
  const reason = reasonOf(error);
  // One of some hundred wrong passphrases decrypts a key to bytes that are no key.
  const isWrong = reason === 'bad decrypt' || (reason === 'unsupported' && String(key).includes('ENCRYPTED'));
  if (!isWrong) return `cert and key must be a pair as PEM text (not the paths of files): ${reason}`;
  return passphrase === undefined
    ? 'key is encrypted: its passphrase is needed'
    : 'key cannot be decrypted: its passphrase is another one';
}

/** Whether this is one or more certificates in PEM. Node ignores any other text in `ca`, so check here. */
function isCertificates(ca: Pem): boolean {
  const list: readonly unknown[] = Array.isArray(ca) ? ca : [ca];
  return list.length > 0 && list.every((pem) => String(pem).includes('-----BEGIN ') && isCertificate(pem));
}

function isCertificate(pem: unknown): boolean {
  try {
    new X509Certificate(pem as string);
    return true;
  } catch {
    return false;
  }
}

/** Shows only the label of PEM text, or the path of a file. The rest might be a private key. */
function showPem(ca: unknown): string {
  const [label] = typeof ca === 'string' ? (/-----BEGIN [^-]*-----/.exec(ca) ?? []) : [];
  return show(label ?? (typeof ca === 'string' ? ca.replace(/^.*\n.*$/s, '…') : ca));
}

/** Returns OpenSSL's reason. Node's own message might show the value of an option. */
const reasonOf = (error: unknown): unknown =>
  error instanceof Error && 'reason' in error ? error.reason : 'unknown reason';
