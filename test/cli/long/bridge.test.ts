import { once } from 'node:events';
import { existsSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { startPython } from '../../../compat/python.ts';
import { EtcdClient } from '../../../src/client.ts';
import { LockManager } from '../../../src/manager/manager.ts';
import { makeAuthority } from '../../support/certificates.ts';
import { runCli, startCli } from '../../support/cli.ts';
import { closedEndpoint, serve } from '../../support/clients.ts';
import { entriesBelow } from '../../support/gateway.ts';
import { freshName } from '../../support/locks.ts';
import { httpAnswer } from '../../support/tcp-server.ts';
import { temporaryDirectory } from '../../support/temporary.ts';
import { onEtcd } from '../running.ts';

/** Starts `bridge`, which is killed after the test. */
async function bridge(...args: string[]) {
  const cli = startCli(['bridge', '--listen', '127.0.0.1:0', ...args], onEtcd());
  onTestFinished(() => void cli.process.kill('SIGKILL'));
  const [line] = await Promise.race([
    once(cli.process.stdout, 'data') as Promise<[Buffer]>,
    cli.result.then(({ code, stderr }) => expect.unreachable(`exit code ${code}: ${stderr}`)),
  ]);
  return { ...cli, line: String(line).trimEnd() };
}

test('bridge prints its URL on one line, and python-etcd locks there on etcd v3, until SIGTERM', async () => {
  const { line, process, result } = await bridge();
  expect(line).toMatch(/^http:\/\/127\.0\.0\.1:[1-9]\d*$/);
  const python = await startPython(line);
  onTestFinished(() => python.stop());
  const name = freshName();
  const lock = await python.lock(name);
  expect(await lock.acquire({ lockTtl: 60 })).toBe(true);
  expect(await entriesBelow(`/_locks/${name}/`)).toMatchObject([{ value: (await lock.state()).uuid }]);
  await lock.release();
  process.kill('SIGTERM');
  expect(await result).toMatchObject({ code: 143, stderr: '' });
});

test('bridge --json prints its URL and process ID, and reports the URLs of --advertise to clients', async () => {
  const { line, process } = await bridge('--json', '--advertise', 'http://b1:4001,http://b2:4001');
  const { url, pid, ...rest } = JSON.parse(line) as { url: string; pid: number };
  expect({ pid, rest }).toEqual({ pid: process.pid, rest: {} });
  expect(await (await fetch(`${url}/v2/machines`)).text()).toBe('http://b1:4001, http://b2:4001');
});

test.each([
  [['--listen', 'nowhere'], /--listen must be an address and a port, or a Unix socket, got "nowhere"/],
  [['--listen', '127.0.0.1:70000'], /port must be at most 65535, got 70000/],
  [['--advertise', 'b1:4001'], /advertise must be URLs such as http:\/\/host:4001, got "b1:4001"/],
  [['--api', 'v2'], /bridge needs etcd v3: use --api v3 \(the default\) or --api both, got v2/],
  [['--listen-cert', 'a.pem'], /to serve HTTPS, both --listen-cert and --listen-key are needed/],
  [['--listen-ca', 'a.pem'], /to serve HTTPS, both --listen-cert and --listen-key are needed/],
  [['--listen-cert', '/nowhere/a.pem', '--listen-key', 'b.pem'], /cannot read "\/nowhere\/a.pem": ENOENT/],
  [['--listen-key-passphrase-file', 'a'], /--listen-key-passphrase-file requires --listen-key/],
  [['--socket-mode', '600'], /socketMode requires socket/],
  [['--listen', 'unix:///x.sock', '--socket-mode', 'rw'], /must be three octal digits, such as 660/],
  [['--max-polls', '0'], /maxPolls must be an integer ≥ 1, got 0/],
  [['--log', 'all'], /--log <what>.*changes, requests/],
  [
    ['--lock-prefix', 'locks'],
    /lockPrefix of a bridge must begin with "\/" and a name, such as "\/_locks", got "locks"/,
  ],
])('bridge %j exits with 64, and says why', async (args, message) => {
  const { code, stderr } = await runCli(['bridge', '--listen', '127.0.0.1:0', ...args], onEtcd());
  expect(code).toBe(64);
  expect(stderr).toMatch(message);
});

test('bridge --log requests prints JSON lines to stderr, and --log changes leaves the requests out', async () => {
  const logs = [];
  for (const what of ['requests', 'changes']) {
    const { line, process, result } = await bridge('--log', what);
    await fetch(`${line}/v2/keys/_locks/x?quorum=true`);
    process.kill('SIGTERM');
    const lines = (await result).stderr.trimEnd().split('\n');
    logs.push(lines.map((text) => JSON.parse(text) as { event: string; time: string; path?: string }));
  }
  const [requests = [], changes = []] = logs;
  expect(changes.map(({ event }) => event)).toEqual(['listening', 'etcd reachable', 'stopping', 'stopped']);
  expect(requests.map(({ event }) => event)).toEqual(['listening', 'etcd reachable', 'request', 'stopping', 'stopped']);
  expect(requests[2]).toMatchObject({ method: 'GET', path: '/v2/keys/_locks/x', status: 200 });
  for (const { time } of [...requests, ...changes]) expect(time).toMatch(/^\d{4}-\d\d-\d\dT[\d:.]+Z$/);
});

/** Starts `bridge` with a certificate in files, and a manager of its locks. */
async function bridgeWithFiles() {
  const authority = makeAuthority();
  const { cert, key } = authority.issue();
  const directory = temporaryDirectory();
  const [certFile, keyFile] = [join(directory, 'cert.pem'), join(directory, 'key.pem')];
  writeFileSync(certFile, cert);
  writeFileSync(keyFile, key);
  const cli = await bridge('--listen-cert', certFile, '--listen-key', keyFile);
  const client = new EtcdClient({ endpoints: cli.line, ca: authority.ca });
  onTestFinished(() => client.close());
  return { ...cli, certFile, locks: new LockManager(client) };
}

test('bridge serves HTTPS with the certificate of --listen-cert', async () => {
  const { locks } = await bridgeWithFiles();
  expect(await locks.request(freshName(), () => 'held')).toBe('held');
});

test('SIGHUP makes a bridge read its certificates again, and say if it cannot use them; without any, it ends', async () => {
  const { process, result, certFile, locks } = await bridgeWithFiles();
  writeFileSync(certFile, 'half a certifi');
  process.kill('SIGHUP');
  expect(String((await once(process.stderr, 'data'))[0])).toContain('the old certificates stay in use');
  expect(await locks.request(freshName(), () => 'held')).toBe('held');
  process.kill('SIGTERM');
  expect(await result).toMatchObject({ code: 143 });
  const plain = await bridge();
  plain.process.kill('SIGHUP');
  expect(await plain.result).toMatchObject({ code: 129 });
});

test('bridge and serve listen on a Unix socket, which commands can use, and remove it at their end', async () => {
  const directory = temporaryDirectory();
  const [socket, other] = [join(directory, 'bridge.sock'), join(directory, 'serve.sock')];
  const serving = startCli(['serve', '--socket', other, '--socket-mode', '660']);
  onTestFinished(() => void serving.process.kill('SIGKILL'));
  expect(String((await once(serving.process.stdout, 'data'))[0])).toBe(`unix://${other}\n`);
  const bridging = startCli([
    'bridge',
    '--listen',
    `unix://${socket}`,
    '--socket-mode',
    '600',
    '--endpoints',
    `unix://${other}`,
  ]);
  onTestFinished(() => void bridging.process.kill('SIGKILL'));
  expect(String((await once(bridging.process.stdout, 'data'))[0])).toBe(`unix://${socket}\n`);
  expect([other, socket].map((path) => (statSync(path).mode & 0o777).toString(8))).toEqual(['660', '600']);
  const env = { ETCD_ENDPOINTS: `unix://${socket}` };
  expect(await runCli(['run', 'x', '-q', '--', 'echo', 'held'], env)).toMatchObject({ code: 0, stdout: 'held\n' });
  expect(await runCli(['doctor', '--endpoints', `unix://${other}`])).toMatchObject({ code: 0 });
  const busy = await runCli(['serve', '--socket', other]);
  expect(busy).toMatchObject({
    code: 125,
    stderr: expect.stringMatching(/cannot listen on .*EADDRINUSE.*Try another/),
  });
  for (const { process, result } of [bridging, serving]) {
    process.kill('SIGTERM');
    expect(await result).toMatchObject({ code: 143 });
  }
  expect([socket, other].filter((path) => existsSync(path))).toEqual([]);
});

test('bridge exits with 125 if the port is taken', async () => {
  const port = new URL(await closedEndpoint()).port;
  const taken = await bridge('--listen', `127.0.0.1:${port}`);
  const { code, stderr } = await runCli(['bridge', '--listen', new URL(taken.line).host], onEtcd());
  expect(code).toBe(125);
  expect(stderr).toMatch(/cannot listen on 127\.0\.0\.1:\d+: .*EADDRINUSE.*Try another --listen/);
});

test('bridge exits with 69 at its start if etcd is too old', async () => {
  const etcd = await serve((socket) => void socket.write(httpAnswer(200, {}, '{"etcdserver":"3.2.32"}')));
  const result = await runCli(['--endpoints', etcd.url, 'bridge', '--listen', '127.0.0.1:0']);
  expect(result).toMatchObject({
    code: 69,
    stdout: '',
    stderr: expect.stringContaining(`${etcd.url}: etcd "3.2.32" is too old: api "v3" needs etcd 3.3 or later`),
  });
});
