import { existsSync, statSync, writeFileSync } from 'node:fs';
import { request } from 'node:http';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { describe, expect, inject, onTestFinished, test } from 'vitest';
import { ignore } from '../../src/base/cancellation.ts';
import { EtcdClient, LockManager } from '../../src/index.ts';
import { Bridge } from '../../src/server/bridge/bridge.ts';
import { EmbeddedEtcd } from '../../src/server/embedded.ts';
import { freshName, rejection } from '../support/locks.ts';
import { runScript } from '../support/script.ts';
import { temporaryDirectory } from '../support/temporary.ts';

const startBridge = (where: { socket: string; socketMode?: number }) =>
  Bridge.start({ endpoints: inject('etcd'), ...where });

const get = (socketPath: string, path: string, headers = {}): Promise<{ status: number | undefined; body: string }> =>
  new Promise((resolve, reject) => {
    request({ socketPath, path, headers }, (response) => {
      text(response).then((body) => resolve({ status: response.statusCode, body }), reject);
    })
      .on('error', reject)
      .end();
  });

describe.each([
  ['a bridge', startBridge],
  ['the embedded server', EmbeddedEtcd.start],
])('%s on a Unix socket', (_, start) => {
  async function use(socket: string, socketMode?: number) {
    const server = await start({ socket, ...(socketMode === undefined ? {} : { socketMode }) });
    onTestFinished(() => server.stop());
    return server;
  }

  const fresh = (): string => join(temporaryDirectory(), 'locks.sock');

  test('gives locks to many clients at once, and removes the socket at its end', async () => {
    const socket = fresh();
    const server = await use(socket);
    expect(server.url).toBe(`unix://${socket}`);
    const name = freshName();
    const tokens = await Promise.all(
      Array.from({ length: 5 }, async () => {
        const client = new EtcdClient({ endpoints: server.url });
        onTestFinished(() => client.close());
        return new LockManager(client).request(name, ({ fencingToken }) => fencingToken);
      }),
    );
    expect(new Set(tokens).size).toBe(5);
    expect((await get(socket, '/v2/machines')).body).toBe(server.url);
    await server.stop();
    expect(existsSync(socket)).toBe(false);
  });

  test.each([0o600, 0o660, 0o666])('has the permissions of the option: %o', async (mode) => {
    const socket = fresh();
    await use(socket, mode);
    expect(statSync(socket).mode & 0o777).toBe(mode);
  });

  test('still refuses web pages', async () => {
    const socket = fresh();
    await use(socket);
    expect(await get(socket, '/v2/machines', { host: 'rebound.test' })).toMatchObject({ status: 403 });
  });

  test('replaces the socket of a process that was killed', async () => {
    const socket = fresh();
    await runScript(`
      import { createServer } from 'node:net';
      createServer().listen(${JSON.stringify(socket)}, () => process.kill(process.pid, 'SIGKILL'));
    `);
    expect(statSync(socket).isSocket()).toBe(true);
    await use(socket);
    expect((await get(socket, '/version')).status).toBe(200);
  });

  test('does not start on a socket that somebody answers, or a file that is no socket, and leaves both', async () => {
    const [taken, file] = [fresh(), fresh()];
    const other = createServer((connection) => connection.on('error', ignore).end('other'));
    await new Promise<void>((resolve) => other.listen(taken, resolve));
    onTestFinished(() => void other.close());
    writeFileSync(file, 'text');
    for (const socket of [taken, file])
      expect(await rejection(start({ socket }))).toMatchObject({ code: 'EADDRINUSE' });
    expect(statSync(taken).isSocket()).toBe(true);
    expect(statSync(file).size).toBe(4);
  });

  test('does not start in a directory that does not exist', async () => {
    const socket = join(temporaryDirectory(), 'none', 'locks.sock');
    expect(await rejection(start({ socket }))).toMatchObject({ syscall: 'listen' });
  });

  test.each([
    [{ socket: '' }, 'socket must be a path such as "/run/locks.sock", got ""'],
    [{ socket: 7 }, 'socket must be a path such as "/run/locks.sock", got 7'],
    [{ socket: '/run/x.sock', port: 4001 }, 'socket cannot be used together with port or host'],
    [{ socketMode: 0o600 }, 'socketMode requires socket'],
    [{ socket: '/run/x.sock', socketMode: 660 }, 'socketMode must be at most 0o777, got 0o1224'],
    [{ socket: '/run/x.sock', socketMode: '660' }, 'socketMode must be an integer ≥ 0, got "660"'],
  ])('does not start with %o', async (where, message) => {
    expect(await rejection(start(where as never))).toHaveProperty('message', message);
  });
});

test('a bridge does not serve HTTPS on a Unix socket', async () => {
  const tls = { cert: '', key: '' };
  const error = await rejection(Bridge.start({ socket: '/run/x.sock', tls }));
  expect(error).toHaveProperty('message', 'tls cannot be used together with socket');
});
