import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { createServer } from 'node:net';
import { constants } from 'node:os';
import { expect, onTestFinished, test } from 'vitest';
import { startPython } from '../../compat/python.ts';
import { Lock } from '../../src/index.ts';
import { runCli, startCli } from '../support/cli.ts';
import { closedEndpoint } from '../support/clients.ts';
import { queueOn, useClient } from '../support/locks.ts';
import type { RunningScript } from '../support/script.ts';
import { startOnTerminal } from '../support/terminal.ts';

interface Served extends RunningScript {
  /** The URL that it printed. */
  readonly url: string;
}

/** Starts `serve`, which is killed after the test. */
async function serve(...args: string[]): Promise<Served> {
  const cli = startCli(['serve', ...args]);
  onTestFinished(() => void cli.process.kill('SIGKILL'));
  const [line] = await Promise.race([
    once(cli.process.stdout, 'data') as Promise<[Buffer]>,
    cli.result.then(({ code, stderr }) => expect.unreachable(`exit code ${code}: ${stderr}`)),
  ]);
  return { ...cli, url: String(line).trimEnd() };
}

/** Returns a port that is in use until the end of the test. */
async function takenPort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1');
  onTestFinished(() => void server.close());
  await once(server, 'listening');
  const address = server.address();
  return address !== null && typeof address === 'object' ? address.port : expect.unreachable();
}

test('serve prints its URL on one line, and responds there like etcd', async () => {
  const { url } = await serve('--port', '0');
  expect(url).toMatch(/^http:\/\/127\.0\.0\.1:[1-9]\d*$/);
  const body = new URLSearchParams({ value: 'hello' });
  const put = await fetch(`${url}/v2/keys/message`, { method: 'PUT', body });
  expect([put.status, await put.json()]).toMatchObject([201, { action: 'set', node: { value: 'hello' } }]);
  const get = await fetch(`${url}/v2/keys/message`);
  expect([get.status, await get.json()]).toMatchObject([200, { action: 'get', node: { value: 'hello' } }]);
});

test('serve --json prints its URL and process ID on one line', async () => {
  const { url: line, process } = await serve('--port', '0', '--json');
  expect(line).not.toContain('\n');
  const { url, pid, ...rest } = JSON.parse(line) as { url: string; pid: number };
  expect({ pid, rest }).toEqual({ pid: process.pid, rest: {} });
  expect((await fetch(`${url}/version`)).status).toBe(200);
});

test('serve on a terminal says how to stop it', async () => {
  const terminal = startOnTerminal([process.execPath, 'dist/cli/main.js', 'serve', '--port', '0']);
  await terminal.shows(/^http:\S+\r\n.*to stop the server, press \^C or run: kill \d+\r\n$/);
  terminal.type('\u0003');
  expect(await terminal.ended).toBe(130);
});

test('python-etcd and this package can share a lock on serve', async () => {
  const { url } = await serve('--port', '0');
  const python = await startPython(url);
  onTestFinished(() => python.kill());
  const name = randomUUID();
  const theirs = await python.lock(name);
  expect(await theirs.acquire({ lockTtl: 60 })).toBe(true);
  const ours = new Lock(useClient({ endpoints: url }), name);
  expect(await ours.acquire({ blocking: false, lockTtl: 60 })).toBe(false);
  await theirs.release();
  expect(await ours.acquire({ timeout: 20 })).toBe(true);
  await ours.release();
  expect(await queueOn(name, url)).toEqual([]);
});

test('serve listens on the given address and port', async () => {
  const { port } = new URL(await closedEndpoint());
  const { url } = await serve('--host', 'localhost', '--port', port);
  expect(new URL(url).port).toBe(port);
  expect((await fetch(`${url}/version`)).status).toBe(200);
});

test.each(['SIGTERM', 'SIGINT', 'SIGHUP', 'SIGQUIT'] as const)(
  '%s ends serve with exit code 128 + n, frees the port and closes open polls',
  async (signal) => {
    const { process, result, url } = await serve('--port', '0');
    const watch = await fetch(`${url}/v2/keys/x?wait=true`);
    process.kill(signal);
    await expect(watch.text()).rejects.toThrow();
    expect(await result).toEqual({
      code: 128 + constants.signals[signal],
      signal: null,
      stdout: `${url}\n`,
      stderr: '',
    });
    expect((await serve('--port', new URL(url).port)).url).toBe(url);
  },
);

test('a port in use is reported with advice', async () => {
  const port = await takenPort();
  const { code, stdout, stderr } = await runCli(['serve', '--port', String(port)]);
  expect({ code, stdout }).toEqual({ code: 125, stdout: '' });
  expect(stderr).toMatch(`etcd-v2-lock: cannot listen on 127.0.0.1 port ${port}: listen EADDRINUSE`);
  expect(stderr).toMatch(/Try another --port or --host\.\n$/);
});

test('an address of another machine is reported', async () => {
  const { code, stderr } = await runCli(['serve', '--port', '0', '--host', '192.0.2.1']);
  expect(code).toBe(125);
  expect(stderr).toMatch(/^etcd-v2-lock: cannot listen on 192\.0\.2\.1 port 0: listen EADDRNOTAVAIL/);
});

test('serve --etcd-version 3.6 has the v3 API alone, and locks work on it', async () => {
  const { url } = await serve('--port', '0', '--etcd-version', '3.6');
  expect((await fetch(`${url}/v2/keys/`)).status).toBe(404);
  const { code, stdout } = await runCli(['run', '--endpoints', url, '--api', 'v3', 'job', '--', 'echo', 'working']);
  expect({ code, stdout }).toEqual({ code: 0, stdout: 'working\n' });
});

test.each([
  [['--apis', 'v2,v4'], 'apis may contain v2 and v3, got "v4"'],
  [['--apis', 'v2', '--etcd-version', '3.6'], 'apis must be v3 alone with version 3.6: etcd 3.6 has no v2'],
  [['--etcd-version', '2.3'], 'Allowed choices are 3.4, 3.5, 3.6.'],
])('serve %j is bad usage', async (args, message) => {
  const { code, stderr } = await runCli(['serve', '--port', '0', ...args]);
  expect(code).toBe(64);
  expect(stderr).toContain(message);
});

test('an invalid port is bad usage', async () => {
  const { code, stderr } = await runCli(['serve', '--port', '65536']);
  expect({ code, stderr }).toEqual({ code: 64, stderr: 'etcd-v2-lock: port must be at most 65535, got 65536\n' });
});
