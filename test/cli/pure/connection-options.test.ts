import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, onTestFinished, test } from 'vitest';
import { type ConnectionOptions, clientOptions, type Environment } from '../../../src/cli/connection.ts';
import { UsageError } from '../../../src/cli/exit-codes.ts';
import { originsOf } from '../../../src/http/checks/endpoints.ts';
import { makeDataDir, removeDataDir } from '../../support/data-dir.ts';

const PEM = '-----BEGIN CERTIFICATE-----\n';

/** Creates a directory with these files, which is removed after the test. */
function useFiles(files: Readonly<Record<string, string>>): (name: string) => string {
  const dir = makeDataDir();
  onTestFinished(() => removeDataDir(dir));
  for (const [name, text] of Object.entries(files)) writeFileSync(join(dir, name), text);
  return (name) => join(dir, name);
}

const refusalOf = (flags: ConnectionOptions, env: Environment = {}): string => {
  try {
    return `accepted: ${Object.keys(clientOptions(flags, env)).join(', ')}`;
  } catch (error) {
    if (error instanceof UsageError) return error.message;
    throw error;
  }
};

describe('the members', () => {
  test.each<[string, ConnectionOptions, Environment, object]>([
    ['are the default ones without flags and variables', {}, {}, {}],
    ['are those of ETCD_ENDPOINTS', {}, { ETCD_ENDPOINTS: 'http://a:1' }, { endpoints: 'http://a:1' }],
    ['are those of ETCDCTL_ENDPOINTS', {}, { ETCDCTL_ENDPOINTS: 'http://a:1' }, { endpoints: 'http://a:1' }],
    [
      'are those of ETCD_ENDPOINTS if both are set',
      {},
      { ETCDCTL_ENDPOINTS: 'http://b:1', ETCD_ENDPOINTS: 'http://a:1' },
      { endpoints: 'http://a:1' },
    ],
    [
      'are those of ETCDCTL_ENDPOINTS if ETCD_ENDPOINTS is empty',
      {},
      { ETCDCTL_ENDPOINTS: 'http://b:1', ETCD_ENDPOINTS: '' },
      { endpoints: 'http://b:1' },
    ],
    [
      'are those of the flag, even if variables are set',
      { endpoints: 'http://c:1' },
      { ETCD_ENDPOINTS: 'http://a:1', ETCDCTL_DISCOVERY_SRV: 'd' },
      { endpoints: 'http://c:1' },
    ],
    [
      'can be discovered by SRV records',
      { discoverySrv: 'example.org' },
      { ETCD_ENDPOINTS: 'a:1' },
      { srvDomain: 'example.org' },
    ],
    [
      'can be discovered by the variable of etcdctl',
      {},
      { ETCDCTL_DISCOVERY_SRV: 'example.org', ETCDCTL_ENDPOINTS: '' },
      { srvDomain: 'example.org' },
    ],
    [
      'are the given ones, even if the variable of etcdctl names a domain',
      {},
      { ETCDCTL_DISCOVERY_SRV: 'example.org', ETCDCTL_ENDPOINTS: 'a:1' },
      { endpoints: 'a:1' },
    ],
    [
      'are discovered if the flag asks for it, even if variables are set',
      { discoverySrv: 'example.org' },
      { ETCDCTL_DISCOVERY_SRV: 'other.org', ETCD_ENDPOINTS: 'a:1' },
      { srvDomain: 'example.org' },
    ],
    [
      'can be discovered by SRV records with a name',
      { discoverySrv: 'example.org', discoverySrvName: 'blue' },
      {},
      { srvDomain: 'example.org', srvName: 'blue' },
    ],
    [
      'can be discovered by the variables of etcdctl, with a name',
      {},
      { ETCDCTL_DISCOVERY_SRV: 'example.org', ETCDCTL_DISCOVERY_SRV_NAME: 'blue' },
      { srvDomain: 'example.org', srvName: 'blue' },
    ],
    [
      'are those of a variable although a variable has a name of SRV records',
      {},
      { ETCD_ENDPOINTS: 'http://a:1', ETCDCTL_DISCOVERY_SRV_NAME: 'blue' },
      { endpoints: 'http://a:1' },
    ],
  ])('%s', (_, flags, env, options) => {
    expect(clientOptions(flags, env)).toEqual(options);
  });

  test('without a scheme are reached by https if a TLS file is given', () => {
    const file = useFiles({ 'ca.pem': PEM });
    const options = clientOptions({ endpoints: 'a:1,http://b:2', cacert: file('ca.pem') }, {});
    expect(options).toHaveProperty('caFile', file('ca.pem'));
    expect(originsOf(options)).toEqual(['https://a:1', 'http://b:2']);
  });

  test('can be a list with blanks, a trailing comma and no scheme', () => {
    expect(originsOf(clientOptions({ endpoints: 'a:1, http://b:2,' }, {}))).toEqual(['http://a:1', 'http://b:2']);
  });

  test('cannot be both listed and discovered', () => {
    expect(refusalOf({ endpoints: 'a:1', discoverySrv: 'b' })).toBe(
      '--endpoints and --discovery-srv cannot be used together',
    );
  });

  test('cannot be discovered by a name alone', () => {
    expect(refusalOf({ discoverySrvName: 'blue' })).toBe('--discovery-srv-name requires --discovery-srv');
  });
});

describe('user and password', () => {
  const app = { username: 'app', password: 'secret' };

  test.each<[string, ConnectionOptions, Environment]>([
    ['--user', { user: 'app:secret' }, {}],
    ['--user and ETCDCTL_PASSWORD', { user: 'app' }, { ETCDCTL_PASSWORD: 'secret' }],
    ['--user and --password', { user: 'app', password: 'secret' }, { ETCDCTL_PASSWORD: 'other' }],
    ['ETCDCTL_USER', {}, { ETCDCTL_USER: 'app:secret' }],
    ['ETCDCTL_USER and ETCDCTL_PASSWORD', {}, { ETCDCTL_USER: 'app', ETCDCTL_PASSWORD: 'secret' }],
    ['ETCDCTL_USERNAME and ETCDCTL_PASSWORD', {}, { ETCDCTL_USERNAME: 'app', ETCDCTL_PASSWORD: 'secret' }],
    ['--password over that of ETCDCTL_USER', { password: 'secret' }, { ETCDCTL_USER: 'app:other' }],
    ['--user over ETCDCTL_USER', { user: 'app:secret' }, { ETCDCTL_USER: 'joe:other', ETCDCTL_PASSWORD: 'other' }],
  ])('come from %s', (_, flags, env) => {
    expect(clientOptions(flags, env)).toEqual(app);
  });

  test.each([
    ['only the first colon separates them', 'app:a:b', 'a:b'],
    ['the password can be empty', 'app:', ''],
  ])('%s', (_, user, password) => {
    expect(clientOptions({ user }, {})).toEqual({ username: 'app', password });
  });

  test.each(['secret', 'secret\n', 'secret\r\n', 'secret\nand what it is for\n'])(
    'the password is the first line of a password file: %j',
    (text) => {
      const passwordFile = useFiles({ password: text })('password');
      const { username, password } = clientOptions({ user: 'app', passwordFile }, { ETCDCTL_PASSWORD: 'other' });
      expect({ username, password: (password as () => string)() }).toEqual(app);
    },
  );

  test('a password file is read again each time the password is asked for', () => {
    const passwordFile = useFiles({ password: 'secret' })('password');
    const ask = clientOptions({ user: 'app', passwordFile }, {}).password as () => string;
    writeFileSync(passwordFile, 'changed\n');
    expect(ask()).toBe('changed');
    writeFileSync(passwordFile, '');
    expect(ask).toThrow(`no password in ${passwordFile}: its first line is empty`);
  });

  test('ETCDCTL_PASSWORD without a user is ignored', () => {
    expect(clientOptions({}, { ETCDCTL_PASSWORD: 'secret' })).toEqual({});
  });

  test.each<[ConnectionOptions, RegExp]>([
    [{ user: 'app' }, /no password for user "app": set ETCDCTL_PASSWORD or use --password-file/],
    [{ password: 'secret' }, /a password requires --user/],
    [{ user: 'app', password: 'secret', passwordFile: 'f' }, /--password and --password-file cannot be used together/],
    [{ user: 'app:secret', password: 'secret' }, /two passwords for "app"/],
  ])('%j is rejected without showing a password', (flags, message) => {
    expect(refusalOf(flags)).toMatch(message);
    expect(refusalOf(flags)).not.toContain('secret');
  });

  test('an empty password file is rejected with its path', () => {
    const passwordFile = useFiles({ password: '\nsecret' })('password');
    expect(refusalOf({ user: 'app', passwordFile })).toBe(`no password in ${passwordFile}: its first line is empty`);
  });
});

describe('TLS files', () => {
  const files = { 'ca.pem': `${PEM}ca`, 'cert.pem': `${PEM}cert`, 'key.pem': `${PEM}key` };

  test('are read from flags and from the variables of etcdctl 2 and 3', () => {
    const file = useFiles(files);
    const [cacert, cert, key] = [file('ca.pem'), file('cert.pem'), file('key.pem')];
    const read = { caFile: cacert, certFile: cert, keyFile: key };
    expect(clientOptions({ cacert, cert, key }, {})).toEqual(read);
    expect(clientOptions({}, { ETCDCTL_CACERT: cacert, ETCDCTL_CERT: cert, ETCDCTL_KEY: key })).toEqual(read);
    const ofApi2 = { ETCDCTL_CA_FILE: cacert, ETCDCTL_CERT_FILE: cert, ETCDCTL_KEY_FILE: key };
    expect(clientOptions({}, ofApi2)).toEqual(read);
  });

  test('come with the passphrase in the first line of a file, and with the name to expect', () => {
    const file = useFiles({ ...files, passphrase: 'open it\n' });
    const [cert, key] = [file('cert.pem'), file('key.pem')];
    const options = clientOptions({ cert, key, keyPassphraseFile: file('passphrase'), tlsServerName: 'etcd.test' }, {});
    expect(options).toMatchObject({ passphrase: 'open it', serverName: 'etcd.test' });
  });

  test('cannot have a passphrase without a key, or an empty one', () => {
    const file = useFiles({ ...files, passphrase: '\n' });
    const [cert, key, keyPassphraseFile] = [file('cert.pem'), file('key.pem'), file('passphrase')];
    expect(refusalOf({ keyPassphraseFile })).toBe('--key-passphrase-file requires --key');
    expect(refusalOf({ cert, key, keyPassphraseFile })).toBe(
      `no passphrase in ${keyPassphraseFile}: its first line is empty`,
    );
  });

  test.each<[string, (file: string) => ConnectionOptions]>([
    ['an authority', (cacert) => ({ cacert })],
    ['a certificate', (cert) => ({ cert, key: 'any' })],
    ['a password file', (passwordFile) => ({ user: 'app', passwordFile })],
  ])('%s that does not exist is rejected with its path', (_, flagsWith) => {
    const missing = useFiles({})('missing');
    expect(refusalOf(flagsWith(missing))).toBe(`cannot read "${missing}": ENOENT: no such file or directory`);
  });

  test('a directory is rejected with its path', () => {
    const dir = useFiles({})('dir');
    mkdirSync(dir);
    expect(refusalOf({ cacert: dir })).toBe(`cannot read "${dir}": EISDIR: illegal operation on a directory`);
  });

  test('a file that is not PEM is rejected with its path and without its content', () => {
    const cacert = useFiles({ 'ca.pem': 'secret' })('ca.pem');
    expect(refusalOf({ cacert })).toBe(`${cacert} is not a PEM file: it has no "-----BEGIN …" line`);
  });

  test('a certificate requires its key, and a key its certificate', () => {
    const file = useFiles(files);
    expect(refusalOf({ cert: file('cert.pem') })).toBe(
      `--cert and --key must be used together, got only ${file('cert.pem')}`,
    );
    expect(refusalOf({}, { ETCDCTL_KEY: file('key.pem') })).toMatch(/must be used together, got only .*key\.pem/);
  });
});
