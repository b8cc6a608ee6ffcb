import { createPrivateKey, generateKeyPairSync, randomUUID } from 'node:crypto';
import forge from 'node-forge';

/** A certificate and its private key, as PEM. */
export interface Identity {
  readonly cert: string;
  readonly key: string;
}

export interface CertificateOptions {
  /** Host names and addresses the certificate is valid for. Default: this host's. */
  readonly hosts?: readonly string[];
  /** The certificate expired yesterday. */
  readonly expired?: boolean;
  /** Its subject has an organization instead of a common name. */
  readonly unnamed?: boolean;
  /** It may not be used by clients. */
  readonly serverOnly?: boolean;
}

export interface Authority {
  /** The authority's own certificate, as PEM. */
  readonly ca: string;
  /** Issues a certificate for servers and clients: etcd uses its own as both. */
  issue(options?: CertificateOptions): Identity;
}

const DAY = 24 * 3600 * 1000;
const LOCALHOST = ['127.0.0.1', 'localhost'];
/** X.509's types of alternative names. */
const DNS = 2;
const IP = 7;

/** Creates a certificate authority with a unique name. */
export function makeAuthority({ expired = false } = {}): Authority {
  const name = `test authority ${randomUUID()}`;
  const keys = makeKeys();
  const sign = (cert: forge.pki.Certificate): string => {
    cert.setIssuer([{ name: 'commonName', value: name }]);
    cert.sign(keys.privateKey, forge.md.sha256.create());
    return forge.pki.certificateToPem(cert);
  };
  const own = certificate(name, keys.publicKey, expired, [
    { name: 'basicConstraints', cA: true, critical: true },
    { name: 'keyUsage', keyCertSign: true, critical: true },
  ]);
  return {
    ca: sign(own),
    issue(options = {}) {
      const { publicKey, key } = makeKeys();
      const altNames = (options.hosts ?? LOCALHOST).map((host) =>
        /^[\d.]+$/.test(host) ? { type: IP, ip: host } : { type: DNS, value: host },
      );
      const cert = certificate('test', publicKey, options.expired ?? false, [
        { name: 'subjectAltName', altNames },
        { name: 'extKeyUsage', serverAuth: true, clientAuth: !options.serverOnly },
      ]);
      if (options.unnamed) cert.setSubject([{ name: 'organizationName', value: 'test' }]);
      return { cert: sign(cert), key };
    },
  };
}

/** Encrypts a private key. */
export const encrypted = (key: string, passphrase: string): string =>
  createPrivateKey(key).export({ type: 'pkcs8', format: 'pem', cipher: 'aes-256-cbc', passphrase }).toString();

function certificate(
  name: string,
  publicKey: forge.pki.PublicKey,
  expired: boolean,
  extensions: object[],
): forge.pki.Certificate {
  const cert = forge.pki.createCertificate();
  cert.publicKey = publicKey;
  // Serial numbers must be unique; the first digits keep this one positive.
  cert.serialNumber = `01${randomUUID().replaceAll('-', '')}`;
  cert.validity.notBefore = new Date(Date.now() - 2 * DAY);
  cert.validity.notAfter = new Date(Date.now() + (expired ? -DAY : DAY));
  cert.setSubject([{ name: 'commonName', value: name }]);
  cert.setExtensions(extensions);
  return cert;
}

/** Keys from Node, because node-forge needs seconds to generate them. */
function makeKeys() {
  const { privateKey: key } = generateKeyPairSync('rsa', {
    modulusLength: 2048,
    publicKeyEncoding: { type: 'spki', format: 'pem' },
    privateKeyEncoding: { type: 'pkcs8', format: 'pem' },
  });
  const privateKey = forge.pki.privateKeyFromPem(key);
  return { key, privateKey, publicKey: forge.pki.rsa.setPublicKey(privateKey.n, privateKey.e) };
}
