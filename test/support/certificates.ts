import { generateKeyPairSync, randomUUID } from 'node:crypto';
import forge from 'node-forge';

/** A certificate and its private key, as PEM. */
export interface Identity {
  readonly cert: string;
  readonly key: string;
}

export interface CertificateOptions {
  /** Names and addresses it is good for. Default: this host's. */
  readonly hosts?: readonly string[];
  /** Was good until yesterday. */
  readonly expired?: boolean;
}

export interface Authority {
  /** Its own certificate, as PEM: what to trust. */
  readonly ca: string;
  /** Good for servers and for clients, as etcd needs it: it uses its certificate as both. */
  issue(options?: CertificateOptions): Identity;
}

const DAY = 24 * 3600 * 1000;
const LOCALHOST = ['127.0.0.1', 'localhost'];
/** What X.509 numbers the kinds of alternative names by. */
const DNS = 2;
const IP = 7;

/** A certificate authority with a name of its own, which nobody trusts unless told to. */
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
        { name: 'extKeyUsage', serverAuth: true, clientAuth: true },
      ]);
      return { cert: sign(cert), key };
    },
  };
}

function certificate(
  name: string,
  publicKey: forge.pki.PublicKey,
  expired: boolean,
  extensions: object[],
): forge.pki.Certificate {
  const cert = forge.pki.createCertificate();
  cert.publicKey = publicKey;
  // An authority numbers each of its certificates; the first digit keeps the number positive.
  cert.serialNumber = `01${randomUUID().replaceAll('-', '')}`;
  cert.validity.notBefore = new Date(Date.now() - 2 * DAY);
  cert.validity.notAfter = new Date(Date.now() + (expired ? -DAY : DAY));
  cert.setSubject([{ name: 'commonName', value: name }]);
  cert.setExtensions(extensions);
  return cert;
}

/** By Node: node-forge's own take seconds. */
function makeKeys() {
  const { privateKey: key } = generateKeyPairSync('rsa', {
    modulusLength: 2048,
    publicKeyEncoding: { type: 'spki', format: 'pem' },
    privateKeyEncoding: { type: 'pkcs8', format: 'pem' },
  });
  const privateKey = forge.pki.privateKeyFromPem(key);
  return { key, privateKey, publicKey: forge.pki.rsa.setPublicKey(privateKey.n, privateKey.e) };
}
