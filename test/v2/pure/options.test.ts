import { X509Certificate } from 'node:crypto';
import { inspect } from 'node:util';
import { expect, test } from 'vitest';
import type { Pem } from '../../../src/http/tls/settings.ts';
import { V2Client } from '../../../src/v2/client.ts';
import { checkOptions, type V2ClientOptions } from '../../../src/v2/options.ts';
import { encrypted, makeAuthority } from '../../support/certificates.ts';

const authority = makeAuthority();
const pem = authority.ca;
const { cert, key } = authority.issue();
const locked = encrypted(key, 'open it');

test('the defaults are the etcd on this host and the usual prefixes', () => {
  expect(checkOptions({})).toEqual({
    endpoints: ['http://127.0.0.1:2379'],
    randomizeEndpoints: true,
    followMembers: false,
    srvDomain: undefined,
    srvName: undefined,
    lockPrefix: '/_locks',
    versionPrefix: '/v2',
    readTimeout: 10,
    username: undefined,
    password: undefined,
    authorization: undefined,
    tls: {},
    expectedClusterId: undefined,
  });
});

test.each<[string, string | string[], string[]]>([
  ['a single one', 'http://a:2379', ['http://a:2379']],
  ['with a slash at the end', ['http://a:2379/'], ['http://a:2379']],
  ['given twice', ['http://a:2379', 'http://a:2379/', 'http://b:2379'], ['http://a:2379', 'http://b:2379']],
  ['with IPv6', ['http://[::1]:2379'], ['http://[::1]:2379']],
  ['with the usual port', ['https://a:443'], ['https://a']],
  ['in the order given', ['http://c:1', 'http://a:1'], ['http://c:1', 'http://a:1']],
  ['without a scheme', 'localhost:2379', ['http://localhost:2379']],
  ['an IPv4 address without a scheme', '127.0.0.1:2379', ['http://127.0.0.1:2379']],
  ['an IPv6 address without a scheme', '[::1]:2379', ['http://[::1]:2379']],
  ['without a scheme, with a slash at the end', 'localhost:2379/', ['http://localhost:2379']],
  ['with a path', 'https://proxy.example/etcd/', ['https://proxy.example/etcd']],
  ['with a longer path', 'http://a:80/team%201/v2-etcd', ['http://a/team%201/v2-etcd']],
  ['a Unix socket', 'unix:///run/etcd.sock', ['unix:///run/etcd.sock']],
  ['a Unix socket with TLS', 'unixs:///run/etcd.sock', ['unixs:///run/etcd.sock']],
  ['a Unix socket by a relative path, as of etcd 3.4', 'unix://localhost:2379', ['unix://localhost:2379']],
  ['some of a list without a scheme', ['a:1', 'https://b:2'], ['http://a:1', 'https://b:2']],
  ['separated by commas', 'a:1,http://b:2', ['http://a:1', 'http://b:2']],
  ['separated by commas and blanks', ' a:1, http://b:2 ,', ['http://a:1', 'http://b:2']],
])('endpoints become origins: %s', (_, endpoints, origins) => {
  expect(checkOptions({ endpoints }).endpoints).toEqual(origins);
});

test('an endpoint without a scheme is reached by https if a TLS option is given', () => {
  for (const tls of [{ ca: pem }, { cert, key }, { serverName: 'etcd.test' }])
    expect(checkOptions({ endpoints: 'a:1,http://b:2', ...tls }).endpoints).toEqual(['https://a:1', 'http://b:2']);
});

test('with srvDomain there are no endpoints before the DNS lookup', () => {
  expect(checkOptions({ srvDomain: 'example.org' })).toMatchObject({ endpoints: undefined, srvDomain: 'example.org' });
});

test('a user name and a password become one header, including non-ASCII characters', () => {
  const { authorization = '' } = checkOptions({ username: 'root', password: 'pä:ss' });
  expect(authorization).toMatch(/^Basic /);
  expect(Buffer.from(authorization.slice(6), 'base64').toString()).toBe('root:pä:ss');
});

test('an empty password is valid', () => {
  expect(checkOptions({ username: 'root', password: '' }).authorization).toBe('Basic cm9vdDo=');
});

test('TLS options are exactly the given ones', () => {
  expect(checkOptions({ ca: pem }).tls).toEqual({ ca: pem });
  expect(checkOptions({ cert, key }).tls).toEqual({ cert, key });
});

test('an encrypted key is valid with its passphrase', () => {
  const own = { cert, key: locked, passphrase: 'open it' };
  expect(checkOptions(own).tls).toEqual(own);
});

test.each(['etcd', 'etcd.example.org', 'etcd-1.default.svc', '_etcd.test', 'xn--bcher-kva.example'])(
  'the certificates of members may be for the name %s',
  (serverName) => expect(checkOptions({ serverName }).tls).toEqual({ serverName }),
);

test('neither the password nor the passphrase is shown when the settings are printed for a debugger', () => {
  const username = 'root';
  for (const password of ['secret', () => 'secret'])
    expect(inspect(checkOptions({ username, password }).password, { showHidden: true })).not.toContain('secret');
});

test.each<[string, Pem]>([
  ['several', [pem, cert]],
  ['several in one text, with comments', `# ours\n${pem}\n# theirs\n${cert}`],
  ['bytes', Buffer.from(pem)],
])('certificate authorities may be %s', (_, ca) => {
  expect(checkOptions({ ca }).tls).toEqual({ ca });
});

test.each<[unknown, string]>([
  [{ endpoints: [] }, 'endpoints must be a URL or a list of URLs, got [object Array]'],
  [{ endpoints: '' }, 'got ""'],
  [{ endpoints: {} }, 'endpoints must be a URL or a list of URLs, got [object Object]'],
  [{ endpoints: ' , ' }, 'endpoints must be a URL or a list of URLs, got " , "'],
  // Port 80 would be meant, which is not etcd's.
  [{ endpoints: 'localhost' }, 'endpoint must be host:port or a URL such as "http://127.0.0.1:2379", got "localhost"'],
  [{ endpoints: '[::1]' }, 'got "[::1]"'],
  [{ endpoints: '::1:2379' }, 'got ":…"'],
  [{ endpoints: ':2379' }, 'got ":2379"'],
  [{ endpoints: 'localhost:99999' }, 'got "localhost:99999"'],
  [{ endpoints: 'localhost:2379/v2' }, 'endpoint must be http(s)://host:port without a query, got "localhost:2379/v2"'],
  [{ endpoints: ['a:1,b:2'] }, 'got "a:…"'],
  [{ endpoints: 'a:1,b' }, 'got "b"'],
  [{ endpoints: ['http://a:2379', 2379] }, 'got 2379'],
  [{ endpoints: ['http://a:2379', undefined] }, 'got undefined'],
  [{ endpoints: 'http://a:99999' }, 'got "http://a:99999"'],
  [{ endpoints: 'ftp://a:2379' }, 'got "ftp://a:2379"'],
  [
    { endpoints: 'http://a:2379/v2' },
    'endpoint must not contain the path of an API, which the client adds, got "http://a:2379/v2"',
  ],
  [{ endpoints: 'http://a:2379/v2/keys/' }, 'got "http://a:2379/v2/keys/"'],
  [{ endpoints: 'https://proxy/etcd/v3' }, 'got "https://proxy/etcd/v3"'],
  [{ endpoints: 'https://proxy/etcd?x' }, 'endpoint must be http(s)://host:port without a query'],
  [{ endpoints: 'http://a:2379/?x=1' }, 'got "http://a:2379/?x=1"'],
  [{ endpoints: 'http://a:2379/#x' }, 'got "http://a:2379/#x"'],
  [{ endpoints: 'unix:///' }, 'endpoint must be a Unix socket such as "unix:///run/etcd.sock", got "unix:///"'],
  [{ endpoints: 'unix://' }, 'got "unix://"'],
  [{ endpoints: 'unix:/run/etcd.sock' }, 'got "unix:/run/etcd.sock"'],
  [{ endpoints: 'unixs:' }, 'endpoint must be a Unix socket'],
  [{ endpoints: 'unix:///run/' }, 'got "unix:///run/"'],
  [{ endpoints: `unix:///${'x'.repeat(107)}` }, 'the path of a Unix socket must have at most 107 bytes, got 108'],
  [{ endpoints: 'http://root@a:2379' }, 'endpoint must not contain credentials'],
  [{ srvDomain: '' }, 'srvDomain must be a domain name, got ""'],
  [{ srvDomain: 'example.org', srvName: '' }, 'srvName must be a part of a domain name, got ""'],
  [{ srvDomain: 7 }, 'srvDomain must be a domain name, got 7'],
  [{ lockPrefix: 'locks' }, 'lockPrefix must begin with "/", got "locks"'],
  [{ lockPrefix: '/' }, 'lockPrefix must not be empty, got "/"'],
  [{ lockPrefix: '' }, 'lockPrefix must begin with "/", got ""'],
  [{ lockPrefix: '/locks/' }, 'lockPrefix must have no empty, "." or ".." segment, got "/locks/"'],
  [{ lockPrefix: '/a/../b' }, 'lockPrefix must have no empty, "." or ".." segment, got "/a/../b"'],
  [{ versionPrefix: 'v2' }, 'versionPrefix must begin with "/", got "v2"'],
  [{ versionPrefix: '/v2/' }, 'versionPrefix must have no empty, "." or ".." segment, got "/v2/"'],
  [{ versionPrefix: '/v 2' }, 'versionPrefix must be a plain path such as "/v2", got "/v 2"'],
  [{ versionPrefix: '/v2?x=1' }, 'got "/v2?x=1"'],
  [{ endpoints: null }, 'endpoints must be a URL or a list of URLs, got null'],
  [{ readTimeout: 0 }, 'readTimeout must be a number of seconds > 0, got 0'],
  [{ readTimeout: -1 }, 'readTimeout must be a number of seconds > 0, got -1'],
  [{ readTimeout: Number.NaN }, 'readTimeout must be a number of seconds > 0, got NaN'],
  [{ readTimeout: 1 / 0 }, 'readTimeout must be a number of seconds > 0, got Infinity'],
  [{ readTimeout: '5' }, 'readTimeout must be a number of seconds > 0, got "5"'],
  [{ readTimeout: null }, 'readTimeout must be a number of seconds > 0, got null'],
  [{ readTimeout: 5n }, 'readTimeout must be a number of seconds > 0, got 5n'],
  [{ username: 'root' }, 'username "root" needs a password, got undefined'],
  [{ username: 'root', password: 7 }, 'username "root" needs a password, got number'],
  [{ username: '', password: 'secret' }, 'username must be a non-empty string without ":", got ""'],
  [{ username: 'ro:ot', password: 'secret' }, 'username must be a non-empty string without ":", got "ro:…"'],
  [{ username: 'root:secret' }, 'username must be a non-empty string without ":", got "root:…"'],
  [{ username: ':secret', password: '' }, 'got ":…"'],
  [{ username: 'root secret' }, 'username "root…" needs a password, got undefined'],
  [{ username: 'root\nsecret' }, 'username "root…" needs a password, got undefined'],
  [{ username: 'jörg.o-k@example.org' }, 'username "jörg.o-k@example.org" needs a password'],
  [{ username: ['root', 'secret'], password: 'secret' }, 'without ":", got object'],
  [{ username: 'root', password: ['secret'] }, 'username "root" needs a password, got object'],
  [{ password: 'secret' }, 'username must be a non-empty string without ":", got undefined'],
  [{ serverName: '' }, 'serverName must be a host name such as "etcd.example.org", got ""'],
  [{ serverName: '10.0.0.1' }, 'serverName must be a host name, and not an IP address: TLS sends none, got "10.0.0.1"'],
  [{ serverName: '::1' }, 'and not an IP address: TLS sends none, got "::1"'],
  [{ serverName: 'https://etcd' }, 'got "https://etcd"'],
  [{ serverName: 'etcd:2379' }, 'got "etcd:2379"'],
  [{ serverName: '*.example.org' }, 'got "*.example.org"'],
  [{ serverName: 'a..b' }, 'got "a..b"'],
  [{ serverName: '-etcd' }, 'got "-etcd"'],
  [{ serverName: 'x'.repeat(64) }, 'serverName must be a host name'],
  [{ serverName: 7 }, 'got 7'],
  [{ expectedClusterId: '' }, 'expectedClusterId must be lower-case hex digits, got ""'],
  [{ expectedClusterId: 'CDF8' }, 'expectedClusterId must be lower-case hex digits, got "CDF8"'],
  [{ expectedClusterId: '0xcdf8' }, 'expectedClusterId must be lower-case hex digits, got "0xcdf8"'],
])('a RangeError is thrown for %o', (options, message) => {
  const make = () => new V2Client(options as V2ClientOptions);
  expect(make).toThrow(RangeError);
  expect(make).toThrow(message);
  expect(make).not.toThrow(/secret/);
});

const ALMOST_OPENED = `-----BEGIN ENCRYPTED PRIVATE KEY-----
MIHsMFcGCSqGSIb3DQEFDTBKMCkGCSqGSIb3DQEFDDAcBAiGMe1pHRQo3wICCAAw
DAYIKoZIhvcNAgkFADAdBglghkgBZQMEASoEEFJhJY2/hDltQwLIk6MvSlIEgZDc
OvzrcIoxY+eAr6FtouxoAGZJU4nJJDQw/6P99FRI/oa2V42iW0bs/RR2jUXReM18
U8z6x0o2y7CfodmedjPV4qQBYnVI99AxNxbjO1IWNEfLLXliXFiyiaMld4PO+R51
+qTuDfDCiWUUjGVw/5zqT6wIWC5jcU1AcnJ0v8Y3aGxQPCDbl2MTJ/CQFe4yNS4=
-----END ENCRYPTED PRIVATE KEY-----
`;

test.each<[string, unknown, string]>([
  ['the path of an authority', { ca: '/etc/ca.pem' }, 'got "/etc/ca.pem"'],
  ['an empty authority', { ca: '' }, 'got ""'],
  ['an empty list of authorities', { ca: [] }, 'got [object Array]'],
  ['half an authority', { ca: [pem, '-----BEGIN CERTIFICATE-----'] }, 'got [object Array]'],
  ['an authority in other bytes than PEM', { ca: new X509Certificate(pem).raw }, 'got [object Uint8Array]'],
  ['null for an authority', { ca: null }, 'got null'],
  ['a private key for an authority', { ca: key }, 'got "-----BEGIN PRIVATE KEY-----"'],
  [
    'a key in one line for an authority',
    { ca: '-----BEGIN PRIVATE KEY----- secret' },
    'got "-----BEGIN PRIVATE KEY-----"',
  ],
  ['a key without its label for an authority', { ca: 'secret\nsecret' }, 'got "…"'],
  ['paths', { cert: 'c.pem', key: 'k.pem' }, 'not the paths of files): no start line'],
  ['the key of another certificate', { cert, key: authority.issue().key }, 'files): key values mismatch'],
  ['text that is not a key', { cert, key: 'secret' }, 'cert and key must be a pair as PEM text'],
  ['a certificate of the wrong type', { cert: 7, key }, 'cert and key must be a pair as PEM text'],
  ['an encrypted key alone', { cert, key: locked }, 'key is encrypted: its passphrase is needed'],
  [
    'the passphrase of another key',
    { cert, key: locked, passphrase: 'my secret' },
    'key cannot be decrypted: its passphrase is another one',
  ],
  [
    'a wrong passphrase that decrypts the key to bytes which are no key',
    { cert, key: ALMOST_OPENED, passphrase: 'guess 181' },
    'key cannot be decrypted: its passphrase is another one',
  ],
  ['a key of the wrong type', { cert, key: ['secret'] }, 'cert and key must be a pair as PEM text'],
])('invalid TLS options are refused: %s', (_, options, message) => {
  const make = () => new V2Client(options as V2ClientOptions);
  expect(make).toThrow(RangeError);
  expect(make).toThrow(message);
  expect(make).not.toThrow(/secret|\n/);
});

test.each<[unknown, string]>([
  [{ srvName: 'blue' }, 'srvName requires srvDomain'],
  [{ randomizeEndpoints: 'no' }, 'randomizeEndpoints must be true or false, got "no"'],
  [{ srvDomain: 'example.org', endpoints: 'http://a:2379' }, 'endpoints and srvDomain cannot be used together'],
  [{ cert: 'c' }, 'cert and key must be given together, got only cert'],
  [{ key: 'k' }, 'cert and key must be given together, got only key'],
  [{ passphrase: 'secret' }, 'passphrase requires key'],
  [{ cert, key, passphrase: 7 }, 'passphrase must be a non-empty string, got number'],
  [{ cert, key, passphrase: '' }, 'passphrase must be a non-empty string, got an empty one'],
  [{ lockPrefix: 7 }, 'lockPrefix must be a string, got 7'],
  [{ versionPrefix: null }, 'versionPrefix must be a string, got null'],
])('a TypeError is thrown for %o', (options, message) => {
  const make = () => new V2Client(options as V2ClientOptions);
  expect(make).toThrow(TypeError);
  expect(make).toThrow(message);
});

test('a cluster id that is not a string is refused, because no answer would ever match it', () => {
  expect(() => new V2Client({ expectedClusterId: 123 as unknown as string })).toThrow('got 123');
});

test.each([
  'http://root:secret@127.0.0.1:2379',
  'http://root:secret',
  'http://root:pass,secret@127.0.0.1:2379',
  'root:pass,secret@127.0.0.1:2379',
  'http://a:1,root:secret',
  'http://root:1secret/',
  'root:secret',
  'http://root:pass#secret@127.0.0.1:2379',
  'http://root:pass/secret@127.0.0.1:2379',
  'http://127.0.0.1:2379:secret',
  'http://127.0.0.1:2379/?password=secret',
  'http://127.0.0.1:2379/#token=secret',
  'http://root:secret@127.0.0.1:2379/path',
  'http://root:secret@127.0.0.1:99999',
  'http://root:secret@',
  'http://root:secret@host name:2379',
  'root:secret@127.0.0.1:2379',
  'etcd://root:secret@127.0.0.1:2379',
  '//root:secret@127.0.0.1:2379',
])('%j is refused without showing the password', (endpoint) => {
  for (const endpoints of [endpoint, ['http://a:2379', endpoint]]) {
    const make = () => new V2Client({ endpoints });
    expect(make).toThrow(RangeError);
    expect(make).not.toThrow(/secret/);
  }
});
