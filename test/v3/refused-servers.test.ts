import { describe, expect, onTestFinished, test } from 'vitest';
import { systemClock } from '../../src/base/time.ts';
import { EtcdClient } from '../../src/client.ts';
import { EtcdConnectionFailed, EtcdUnusableAnswer } from '../../src/errors.ts';
import { LockManager } from '../../src/manager/manager.ts';
import { startEtcd } from '../support/etcd.ts';
import { freshName, rejection, useProxy } from '../support/locks.ts';
import { serveOpenly } from '../support/open-server.ts';
import { httpAnswer, startTcpServer, type TcpHandler, type TcpServer } from '../support/tcp-server.ts';
import { waysOfAsking } from '../support/ways-of-asking.ts';

async function serve(handler: TcpHandler): Promise<TcpServer> {
  const server = await startTcpServer(handler);
  onTestFinished(() => server.stop());
  return server;
}

/** Answers every request with this page, as a reverse proxy does. */
const servePage = (status: number, headers: Record<string, string> = {}): Promise<TcpServer> =>
  serve((socket) => {
    const page = '<html><style>b { color: red }</style>Welcome</html>\n';
    socket.write(httpAnswer(status, { 'content-type': 'text/html', ...headers }, page));
  });

/** Says that it is this version of etcd, and answers nothing else. */
const serveVersion = (etcdserver: string): Promise<TcpServer> =>
  serve((socket, request) => {
    const known = request.startsWith('GET /version ');
    socket.write(known ? httpAnswer(200, {}, JSON.stringify({ etcdserver })) : httpAnswer(404, {}, 'Not Found\n'));
  });

function connect(endpoints: string | readonly string[]): EtcdClient {
  const client = new EtcdClient({ api: 'v3', endpoints });
  onTestFinished(() => client.close({ timeout: 0 }).catch(() => {}));
  return client;
}

/** Requests a lock in every way. Each must reject with an error of this class. Returns its messages. */
async function messagesOf(url: string, ErrorClass: new (...args: never[]) => Error): Promise<string[]> {
  const messages: string[] = [];
  for (const [way, ask] of waysOfAsking) {
    const client = connect(url);
    const error = await rejection(ask(client, freshName()));
    expect(error, way).toBeInstanceOf(ErrorClass);
    messages.push((error as Error).message);
    await client.close({ timeout: 0 });
  }
  return messages;
}

const requested = ({ requests }: TcpServer): string[] =>
  requests.map((request) => request.split(' ', 2).join(' ')).filter((line, i, all) => all.indexOf(line) === i);

describe('a server without the v3 gateway is refused with what to do, and each kind of acquire asks once:', () => {
  const whatToDo = /no v3 gateway .*404.*etcd 3\.3 or later.*--enable-grpc-gateway=false.*--listen-client-http-urls/;

  test('etcd with --enable-grpc-gateway=false, which is skipped if another member has it', async () => {
    const etcd = await startEtcd({ args: ['--enable-grpc-gateway=false'] });
    onTestFinished(() => etcd.stop());
    const proxy = await useProxy(etcd.url);
    for (const message of await messagesOf(proxy.url, EtcdUnusableAnswer)) expect(message).toMatch(whatToDo);
    const paths = proxy.requests.map(({ path }) => path);
    expect(paths.filter((path) => path === '/version')).toHaveLength(waysOfAsking.length);
    // A request with `ifAvailable` reads the queue first.
    expect(paths.filter((path) => /^\/v3\/(lease\/grant|kv\/range)$/.test(path))).toHaveLength(waysOfAsking.length);
    expect(paths).toHaveLength(2 * waysOfAsking.length);
    const good = await startEtcd();
    onTestFinished(() => good.stop());
    expect(await new LockManager(connect([etcd.url, good.url])).request(freshName(), () => 'held')).toBe('held');
  });

  test('a server of etcd’s v2 API alone', async () => {
    const { url } = await serveOpenly(systemClock, { gateway: undefined });
    for (const message of await messagesOf(url, EtcdUnusableAnswer)) expect(message).toMatch(whatToDo);
  });
});

test.each(['3.2.32', '3.1.20', '2.3.8'])(
  'etcd %s is refused by name, and gets no request of a lock',
  async (version) => {
    const server = await serveVersion(version);
    for (const message of await messagesOf(server.url, EtcdUnusableAnswer))
      expect(message).toBe(`${server.url}: etcd "${version}" is too old: api "v3" needs etcd 3.3 or later`);
    expect(requested(server)).toEqual(['GET /version']);
    expect(server.requests).toHaveLength(waysOfAsking.length);
  },
);

test.each([200, 404, 401, 307])('the page of a proxy with status %i is refused, with its beginning', async (status) => {
  const server = await servePage(status, status === 307 ? { location: 'http://127.0.0.1:1/' } : {});
  for (const message of await messagesOf(server.url, EtcdUnusableAnswer))
    expect(message).toBe(
      `${server.url}: the answer to GET /version is not from etcd: ${status} <html><style>b { color: red }</style>Welcome</html>`,
    );
  expect(server.requests).toHaveLength(waysOfAsking.length);
});

test.each([502, 503, 429])(
  'a proxy that answers %i is like an outage: acquire waits until it is over',
  async (status) => {
    const etcd = await startEtcd();
    onTestFinished(() => etcd.stop());
    let failures = 3;
    const server = await serve(async (socket, request) => {
      failures -= 1;
      if (failures >= 0) return void socket.write(httpAnswer(status, { 'content-type': 'text/html' }, '<html>later'));
      const [method = '', path = ''] = request.split(' ', 2);
      const body = method === 'GET' ? null : request.slice(request.indexOf('\r\n\r\n') + 4);
      const relay = async (): Promise<string> => {
        const answer = await fetch(etcd.url + path, { method, body });
        return httpAnswer(answer.status, {}, await answer.text());
      };
      // A watch that is open at the end of the test fails when etcd stops.
      const answer = await relay().catch(() => undefined);
      if (answer) socket.write(answer);
      else socket.destroy();
    });
    expect(await new LockManager(connect(server.url)).request(freshName(), { timeout: 30 }, () => 'held')).toBe('held');
    const page = await servePage(status);
    const error = await rejection(new LockManager(connect(page.url)).acquire(freshName()));
    expect(error).toBeInstanceOf(EtcdConnectionFailed);
    expect(error).toHaveProperty('message', expect.stringContaining(`answered ${status} to GET /version`));
  },
);

test('a port for gRPC only is named as the possible cause', async () => {
  // What Go's gRPC server sends to each connection first: its settings.
  const settings = Buffer.from([0, 0, 6, 4, 0, 0, 0, 0, 0, 0, 5, 0, 0, 0x40, 0]);
  const server = await serve((socket) => void socket.end(settings));
  const error = await rejection(new LockManager(connect(server.url)).acquire('x'));
  expect(error).toBeInstanceOf(EtcdConnectionFailed);
  expect(error).toHaveProperty('message', expect.stringMatching(/for gRPC only\?.*--listen-client-http-urls/));
});

test('a member that was replaced by an older one is asked for its version again', async () => {
  let version = '3.4.23';
  const server = await serve((socket, request) => {
    const known = request.startsWith('GET /version ');
    socket.write(
      known
        ? httpAnswer(200, {}, JSON.stringify({ etcdserver: version }))
        : httpAnswer(404, {}, '404 page not found\n'),
    );
  });
  const locks = new LockManager(connect(server.url));
  expect(String(await rejection(locks.acquire('x')))).toContain('no v3 gateway');
  version = '3.2.32';
  expect(String(await rejection(locks.acquire('x')))).toContain('etcd "3.2.32" is too old');
  expect(requested(server)).toEqual(['GET /version', 'POST /v3/lease/grant']);
});
