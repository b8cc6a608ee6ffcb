import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, describe, expect, test } from 'vitest';
import { makeAuthority } from '../../support/certificates.ts';
import { runCli } from '../../support/cli.ts';
import { closedEndpoint } from '../../support/clients.ts';
import { serveOpenly } from '../../support/open-server.ts';
import { temporaryDirectory } from '../../support/temporary.ts';

const SECRET = 'hunter2secret';
/** Any part of the secret, or its base64 form. */
const LEAK = /hunter|2secret|secret\b(?! itself)|aHVudGVy/;

let endpoint: string;

beforeAll(async () => {
  endpoint = await closedEndpoint();
});

/** Runs a command line without a reachable etcd, with debug output. Returns exit code and message. */
async function failureOf(args: readonly string[], env: Record<string, string> = {}) {
  const { code, stdout, stderr } = await runCli(args, {
    ETCD_ENDPOINTS: endpoint,
    DEBUG: 'etcd-v2-lock:*',
    DEBUG_COLORS: '0',
    ...env,
  });
  expect(stdout + stderr).not.toMatch(LEAK);
  expect(stdout).toBe('');
  const lines = stderr.split('\n').filter((line) => !line.includes(' etcd-v2-lock:'));
  return { code, message: lines[0] };
}

describe('a misplaced password is not shown', () => {
  test.each<[string[], string | RegExp]>([
    [[`--passwrod=${SECRET}`, 'ls'], "unknown option '--passwrod'"],
    [['ls', `--passwrod=${SECRET}`], "unknown option '--passwrod'"],
    [['--passwrod', SECRET, 'ls'], "unknown option '--passwrod'"],
    [['ls', '--passwrod', SECRET], "unknown option '--pass…'"],
    [[`--passwrod ${SECRET}`, 'ls'], "unknown option '--passwrod'"],
    [['ls', `--password ${SECRET}`], "unknown option '--password'"],
    [['ls', `--password:${SECRET}`], "unknown option '--password'"],
    [['ls', `--password${SECRET}`], "unknown option '--password…'"],
    [['ls', `--pass${SECRET}`], "unknown option '--pass…'"],
    [['ls', `--user${SECRET}`], "unknown option '--user…'"],
    [['ls', `--username${SECRET}`], "unknown option '--username…'"],
    [['ls', `--usr=root:${SECRET}`], "unknown option '--usr'"],
    [['ls', `-p${SECRET}`], "unknown option '-p…'"],
    [['ls', `-p=${SECRET}`], "unknown option '-p'"],
    [['ls', `-uroot:${SECRET}`], "unknown option '-u…'"],
    [['ls', `-password=${SECRET}`], "unknown option '-password'"],
    [['-password', SECRET, 'ls'], "unknown option '-password'"],
    [['serve', '--password', SECRET], "unknown option '--password'"],
    [['serve', `--user=root:${SECRET}`], "unknown option '--user'"],
    [['run', 'job', `--passwrod=${SECRET}`, '--', 'true'], "unknown option '--passwrod'"],
    [['--user', 'root', SECRET, 'ls'], /unknown command after the credentials/],
    [['--user', 'root', '--password', 'hunter2', 'secret', 'ls'], /unknown command after the credentials/],
    [['--password=hunter2', 'secret', 'ls'], /unknown command after the credentials/],
    [['--password', '--user', `root:${SECRET}`, 'ls'], /option needs a value, but is followed by the option --user/],
    [['ls', 'a', SECRET], /too many arguments/],
    [['ls', '--user', 'root', 'hunter2', 'secret'], /too many arguments/],
    [['ls', '--ttl', `--password=${SECRET}`], "unknown option '--ttl'"],
    [['doctor', '--ttl', `--password=${SECRET}`], /option needs a value, but is followed by the option --password/],
    [['doctor', '--ttl', `--passwrod=${SECRET}`], /option needs a value, but is followed by the option --passwrod/],
    [['doctor', '--ttl', `-p${SECRET}`], /must be a number, got "-p…"/],
    [['run', 'job', '-E', `--password=${SECRET}`, '--', 'true'], /option needs a value/],
    [['run', 'job', '--identity', `--password=${SECRET}`, '--', 'true'], /option needs a value/],
    [['release', 'job', '--uuid', `--password=${SECRET}`], /option needs a value/],
    [['ls', '--cacert', `--password=${SECRET}`], /option needs a value/],
    [['ls', '--cacert', `--passwrod=${SECRET}`], /option needs a value/],
    [['ls', '--endpoints', `--password=${SECRET}`], /option needs a value/],
    [['ls', '--lock-prefix', `--user=root:${SECRET}`], /option needs a value/],
    [['ls', '--password', SECRET], /a password requires --user/],
    [['ls', '--password', SECRET, '--password-file', '/dev/null'], /cannot be used together/],
    [['ls', '--user', `root:${SECRET}`, '--password', SECRET], /two passwords for "root"/],
    [['ls', '--user', `root=${SECRET}`], /no password for user "root…"/],
    [['ls', '--user', `root ${SECRET}`], /no password for user "root…"/],
    [['ls', '--user', `root/${SECRET}`], /no password for user "root…"/],
    [['ls', '--user', `:${SECRET}`], /username must be a non-empty string/],
    [['ls', '--user', 'root', '--password-file', SECRET], /cannot read the file given by --password-file .*ENOENT/],
    [
      ['ls', '--user', 'root', '--password-file', `a/${SECRET}`],
      /cannot read the file given by --password-file .*ENOENT/,
    ],
    [['ls', '--endpoints', `http://root:${SECRET}@a:1`], /endpoint must not contain credentials .*"…@a:1"/],
    [['ls', '--endpoints', `root:${SECRET},2@a:1`], /endpoint must not contain credentials .*"…@a:1"/],
    [['ls', '--endpoints', `http://a:1,root:${SECRET}`], /endpoint must be .*"root:…"/],
    [
      ['ls', '--endpoints', `http://a:1/?password=${SECRET}`],
      /endpoint must be .* without a query, got "http:\/\/a:1\/\?…"/,
    ],
    [
      ['ls', '--endpoints', `http://a:1/#user=${SECRET}`],
      /endpoint must be .* without a query, got "http:\/\/a:1\/#…"/,
    ],
    [['ui', '--token', SECRET], /the token must have 16 to 200 characters/],
    [['ui', '--token', `--password=${SECRET}`], /option needs a value, but is followed by the option --password/],
    [['ui', '--token-file', SECRET], /cannot read the file given by --token-file .*ENOENT/],
    [['ui', `--token${SECRET}`], /unknown option '--token…'/],
    [['ls', '--key', SECRET], /must be used together, got only --key/],
    [['ls', '--user', `root:${SECRET}`], /ECONNREFUSED/],
    [['ls', '--user', 'root', '--password', SECRET], /ECONNREFUSED/],
  ])('%j', async (args, message) => {
    const ended = await failureOf(args);
    expect(ended.code).toBe(/ECONN/.test(String(message)) ? 69 : 64);
    if (typeof message === 'string') expect(ended.message).toBe(`etcd-v2-lock: ${message}`);
    else expect(ended.message).toMatch(message);
  });

  test.each(['run', 'elect'])('as the command to %s', async (subcommand) => {
    const args = [subcommand, 'job', '--user', 'root', '--password', 'hunter2', 'secret', '--', 'true'];
    expect(await failureOf(args)).toEqual({
      code: 127,
      message: expect.stringMatching(/cannot run the command after the credentials/),
    });
  });

  test('as part of the user name in the output of doctor', async () => {
    const { url } = await serveOpenly();
    const { code, stdout, stderr } = await runCli(['doctor', '--user', `root=${SECRET}:x`], { ETCD_ENDPOINTS: url });
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
    expect(stdout).toContain('user "root…" can read');
    expect(stdout).not.toMatch(LEAK);
  });

  test.each<[Record<string, string>, RegExp]>([
    [{ ETCDCTL_USER: `root:${SECRET}` }, /ECONNREFUSED/],
    [{ ETCDCTL_USER: 'root', ETCDCTL_PASSWORD: SECRET }, /ECONNREFUSED/],
    [{ ETCDCTL_USER: `root=${SECRET}` }, /no password for user "root…"/],
    [{ ETCD_ENDPOINTS: `http://root:${SECRET}@a:1` }, /endpoint must not contain credentials/],
    [{ ETCDCTL_KEY: SECRET }, /must be used together, got only --key/],
  ])('in the environment: %j', async (env, message) => {
    expect((await failureOf(['ls'], env)).message).toMatch(message);
  });
});

describe('the content of a PEM file in place of its name is not shown', () => {
  const { cert, key } = makeAuthority().issue();
  const body = (key.split('\n')[1] ?? '').replaceAll('/', '');

  test.each<[string, string[], Record<string, string>]>([
    ['a key', ['ls', '--key', key], {}],
    ['a key on one line', ['ls', '--key', key.replaceAll('\n', ' ')], {}],
    ['the body of a key', ['ls', '--key', body], {}],
    ['a line of a key that begins with "/"', ['ls', '--key', `/${body}`], {}],
    ['a line of a key that ends with "/"', ['ls', '--key', `${body}/`], {}],
    ['a key in the environment', ['ls'], { ETCDCTL_KEY: key }],
    ['a key for a certificate', ['ls', '--cert', key], {}],
    ['a key for an authority', ['ls', '--cacert', key], {}],
  ])('%s', async (_, args, env) => {
    const { code, stderr } = await runCli(args, { ETCD_ENDPOINTS: endpoint, ...env });
    expect(code).toBe(64);
    expect(stderr).toMatch(/^etcd-v2-lock: .*--(key|cert|cacert)/);
    expect(stderr).not.toContain(body.slice(0, 20));
  });

  test('a key next to its certificate file', async () => {
    const file = join(temporaryDirectory(), 'cert.pem');
    writeFileSync(file, cert);
    const { code, stderr } = await runCli(['ls', '--cert', file, '--key', key], { ETCD_ENDPOINTS: endpoint });
    expect(code).toBe(64);
    expect(stderr).toMatch(/cannot read the file given by --key \(name not shown/);
    expect(stderr).not.toContain(body.slice(0, 20));
  });
});

describe('a value that is not a secret is shown', () => {
  test.each<[string[], string]>([
    [['nosuch'], "unknown command 'nosuch'"],
    [['ls', '--jsno'], "unknown option '--jsno'"],
    [['--password-flie', 'f', 'ls'], "unknown option '--password-flie'"],
    [['-endpoints', 'a', 'ls'], "unknown option '-endpoints'"],
    [['ls', '--json=yes'], "unknown option '--json'"],
    [
      ['run', 'job', '--ttl', 'abc', '--', 'true'],
      'invalid value for option \'--ttl <seconds>\'. It must be a number, got "abc".',
    ],
    [['ls', '--cacert', 'nosuch.pem'], 'cannot read "nosuch.pem": ENOENT: no such file or directory'],
    [
      ['ls', '--user', 'root', '--password-file', '/tmp/nosuch'],
      'cannot read "/tmp/nosuch": ENOENT: no such file or directory',
    ],
    [
      ['ls', '--user', 'root', '--password-file', './nosuch'],
      'cannot read "./nosuch": ENOENT: no such file or directory',
    ],
    [
      ['ls', '--user', 'jörg.o-k@example.org'],
      'no password for user "jörg.o-k@example.org": set ETCDCTL_PASSWORD or use --password-file',
    ],
    [['ls', '--endpoints', 'ftp://a:1'], 'endpoint must be http(s)://host:port without a query, got "ftp://a:1"'],
  ])('%j', async (args, message) => {
    expect(await failureOf(args)).toEqual({ code: 64, message: `etcd-v2-lock: ${message}` });
  });

  test('including the command to run, if credentials are only before "run"', async () => {
    const args = ['--user', 'root:x', 'run', 'job', 'nosuch-command'];
    expect(await failureOf(args)).toEqual({ code: 127, message: 'etcd-v2-lock: command not found: "nosuch-command"' });
  });

  test('with a suggestion', async () => {
    expect((await runCli(['prnue'])).stderr).toMatch(/^\(Did you mean prune\?\)$/m);
    expect((await runCli(['--passwrod', 'x', 'ls'])).stderr).toMatch(/^\(Did you mean --password\?\)$/m);
  });
});
