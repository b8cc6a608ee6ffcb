import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, onTestFinished, test } from 'vitest';
import { type ConnectionOptions, clientOptions, type Environment } from '../../src/cli/connection.ts';
import { UsageError } from '../../src/cli/exit-codes.ts';
import { makeDataDir, removeDataDir } from '../support/data-dir.ts';

const PEM = '-----BEGIN CERTIFICATE-----\n';

/** A directory with these files, removed when the test is over. */
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
    ['are the default ones where nothing is said', {}, {}, {}],
    ['are those of ETCD_ENDPOINTS', {}, { ETCD_ENDPOINTS: 'http://a:1' }, { endpoints: ['http://a:1'] }],
    ['are those of ETCDCTL_ENDPOINTS', {}, { ETCDCTL_ENDPOINTS: 'http://a:1' }, { endpoints: ['http://a:1'] }],
    [
      'are those of ETCD_ENDPOINTS where both are set',
      {},
      { ETCDCTL_ENDPOINTS: 'http://b:1', ETCD_ENDPOINTS: 'http://a:1' },
      { endpoints: ['http://a:1'] },
    ],
    [
      'are those of ETCDCTL_ENDPOINTS where the other is empty',
      {},
      { ETCDCTL_ENDPOINTS: 'http://b:1', ETCD_ENDPOINTS: '' },
      { endpoints: ['http://b:1'] },
    ],
    [
      'are those of the flag, whatever is set',
      { endpoints: 'http://c:1' },
      { ETCD_ENDPOINTS: 'http://a:1', ETCDCTL_DISCOVERY_SRV: 'd' },
      { endpoints: ['http://c:1'] },
    ],
    [
      'may be several, with blanks, a comma too many and no scheme',
      { endpoints: 'a:1, http://b:2,' },
      {},
      { endpoints: ['http://a:1', 'http://b:2'] },
    ],
    ['may be looked up', { discoverySrv: 'example.org' }, { ETCD_ENDPOINTS: 'a:1' }, { srvDomain: 'example.org' }],
    [
      'may be looked up by a variable, as etcdctl does',
      {},
      { ETCDCTL_DISCOVERY_SRV: 'example.org', ETCDCTL_ENDPOINTS: 'a:1' },
      { srvDomain: 'example.org' },
    ],
  ])('%s', (_, flags, env, options) => {
    expect(clientOptions(flags, env)).toEqual(options);
  });

  test('without a scheme speak TLS where a TLS file is given', () => {
    const file = useFiles({ 'ca.pem': PEM });
    const endpoints = 'a:1,http://b:2';
    expect(clientOptions({ endpoints, cacert: file('ca.pem') }, {})).toEqual({
      endpoints: ['https://a:1', 'http://b:2'],
      ca: PEM,
    });
  });

  test('cannot be given and looked up', () => {
    expect(refusalOf({ endpoints: 'a:1', discoverySrv: 'b' })).toBe(
      '--endpoints and --discovery-srv exclude each other',
    );
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
    ['only the first colon parts them', 'app:a:b', 'a:b'],
    ['the password may be empty', 'app:', ''],
  ])('%s', (_, user, password) => {
    expect(clientOptions({ user }, {})).toEqual({ username: 'app', password });
  });

  test.each(['secret', 'secret\n', 'secret\r\n', 'secret\nand what it is for\n'])(
    'a password file has it in its first line: %j',
    (text) => {
      const passwordFile = useFiles({ password: text })('password');
      expect(clientOptions({ user: 'app', passwordFile }, { ETCDCTL_PASSWORD: 'other' })).toEqual(app);
    },
  );

  test('a password without a user is for others, where it is in the environment', () => {
    expect(clientOptions({}, { ETCDCTL_PASSWORD: 'secret' })).toEqual({});
  });

  test.each<[ConnectionOptions, RegExp]>([
    [{ user: 'app' }, /user "app" needs a password: ETCDCTL_PASSWORD or --password-file/],
    [{ password: 'secret' }, /a password goes with --user/],
    [{ user: 'app', password: 'secret', passwordFile: 'f' }, /--password and --password-file exclude each other/],
    [{ user: 'app:secret', password: 'secret' }, /two passwords for "app"/],
  ])('%j is refused without showing a password', (flags, message) => {
    expect(refusalOf(flags)).toMatch(message);
    expect(refusalOf(flags)).not.toContain('secret');
  });

  test('an empty password file is refused with its path', () => {
    const passwordFile = useFiles({ password: '\nsecret' })('password');
    expect(refusalOf({ user: 'app', passwordFile })).toBe(
      `the first line of ${passwordFile} is empty: it should be the password`,
    );
  });
});

describe('TLS files', () => {
  const files = { 'ca.pem': `${PEM}ca`, 'cert.pem': `${PEM}cert`, 'key.pem': `${PEM}key` };
  const read = { ca: `${PEM}ca`, cert: `${PEM}cert`, key: `${PEM}key` };

  test('are read, whether flags name them or variables of either etcdctl', () => {
    const file = useFiles(files);
    const [cacert, cert, key] = [file('ca.pem'), file('cert.pem'), file('key.pem')];
    expect(clientOptions({ cacert, cert, key }, {})).toEqual(read);
    expect(clientOptions({}, { ETCDCTL_CACERT: cacert, ETCDCTL_CERT: cert, ETCDCTL_KEY: key })).toEqual(read);
    const ofApi2 = { ETCDCTL_CA_FILE: cacert, ETCDCTL_CERT_FILE: cert, ETCDCTL_KEY_FILE: key };
    expect(clientOptions({}, ofApi2)).toEqual(read);
  });

  test.each<[string, (file: string) => ConnectionOptions]>([
    ['an authority', (cacert) => ({ cacert })],
    ['a certificate', (cert) => ({ cert, key: 'any' })],
    ['a password file', (passwordFile) => ({ user: 'app', passwordFile })],
  ])('%s that is not there is refused with its path', (_, flagsWith) => {
    const missing = useFiles({})('missing');
    expect(refusalOf(flagsWith(missing))).toBe(`cannot read "${missing}": ENOENT: no such file or directory`);
  });

  test('a directory is refused with its path', () => {
    const dir = useFiles({})('dir');
    mkdirSync(dir);
    expect(refusalOf({ cacert: dir })).toBe(`cannot read "${dir}": EISDIR: illegal operation on a directory`);
  });

  test('what is no PEM file is refused with its path, and nothing of it is shown', () => {
    const cacert = useFiles({ 'ca.pem': 'secret' })('ca.pem');
    expect(refusalOf({ cacert })).toBe(`${cacert} is no PEM file: it has no "-----BEGIN …" line`);
  });

  test('a certificate goes with its key', () => {
    const file = useFiles(files);
    expect(refusalOf({ cert: file('cert.pem') })).toBe(`--cert and --key go together, got only ${file('cert.pem')}`);
    expect(refusalOf({}, { ETCDCTL_KEY: file('key.pem') })).toMatch(/go together, got only .*key\.pem/);
  });
});
