import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { connect, createServer, type Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { expect, inject, onTestFinished, test } from 'vitest';
import { startEtcd } from '../support/etcd.ts';
import { get, poll, put, RawConnection } from '../support/raw-connection.ts';
import { answer, httpAnswer, silent, startTcpServer, type TcpHandler } from '../support/tcp-server.ts';
import { until } from '../support/until.ts';
import { startTcpProxy, type TcpProxy } from './tcp-proxy.ts';

const echo: TcpHandler = (socket, request) => void socket.write(httpAnswer(200, {}, request.split(' ')[1] ?? ''));

/** Milliseconds to wait for bytes that must not come; an answer takes only a few. */
const SILENCE = 300;

/** Fails if bytes arrive or the connection ends within `SILENCE`: silence has no event to wait for. */
async function expectSilence(connection: RawConnection, before = connection.text): Promise<void> {
  await sleep(SILENCE);
  expect(connection.text).toBe(before);
  expect(connection.socket.closed).toBe(false);
  expect(connection.socket.readableEnded).toBe(false);
}

test('the proxy forwards requests and answers, and lists them', async () => {
  const { proxy, server } = await scene(echo);
  const connection = await RawConnection.open(proxy.url);
  expect((await connection.send(put('/a', '1')).wholeAnswers(1))[0]?.body).toBe('/v2/keys/a');
  await connection.send(get('/b?quorum=true')).wholeAnswers(2);
  expect(server.requests).toEqual([put('/a', '1'), get('/b?quorum=true')]);
  expect(proxy.requests).toEqual([
    {
      method: 'PUT',
      path: '/v2/keys/a',
      body: 'value=1',
      at: expect.any(Number),
      answer: httpAnswer(200, {}, '/v2/keys/a'),
    },
    {
      method: 'GET',
      path: '/v2/keys/b?quorum=true',
      body: '',
      at: expect.any(Number),
      answer: httpAnswer(200, {}, '/v2/keys/b?quorum=true'),
    },
  ]);
  expect([proxy.connections, proxy.accepted]).toEqual([1, 1]);
});

test('a request in several pieces is one request, and another protocol is forwarded unread', async () => {
  const { proxy } = await scene(echo);
  const [pieces, other] = [await RawConnection.open(proxy.url), await RawConnection.open(proxy.url)];
  const whole = put('/a', '1');
  for (const piece of [whole.slice(0, 7), whole.slice(7, -1), whole.slice(-1)]) await pieces.send(piece).flushed();
  other.send('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0');
  await pieces.wholeAnswers(1);
  await other.begun(1);
  expect(proxy.requests).toMatchObject([{ method: 'PUT', path: '/v2/keys/a', body: 'value=1' }]);
});

test('a big answer arrives complete, however slowly the client reads', async () => {
  const body = randomUUID().repeat(200_000);
  const { proxy } = await scene(answer(httpAnswer(200, {}, body)));
  const connection = await RawConnection.open(proxy.url);
  connection.socket.pause();
  connection.send(get('/big'));
  await until(
    () => proxy.requests.length,
    (count) => count === 1,
  );
  connection.socket.resume();
  const length = body.length + httpAnswer(200, {}, body).indexOf('\r\n\r\n') + 4;
  await until(
    () => connection.text.length,
    (count) => count === length,
  );
  expect(connection.text.endsWith(body)).toBe(true);
});

test('a client that half-closes its connection still gets the answer and then the end', async () => {
  const server = createServer({ allowHalfOpen: true }, (socket) => {
    socket.on('error', () => {}).resume();
    socket.once('end', () => socket.end('bye'));
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  onTestFinished(() => void server.close());
  const address = server.address();
  const proxy = await useProxy(`http://127.0.0.1:${typeof address === 'object' && address?.port}`);
  const connection = await RawConnection.open(proxy.url);
  connection.send('x').halfClose();
  expect(await connection.closed()).toBe('bye');
  await noConnections(proxy);
});

test('a delay keeps the order of requests and answers, even when it ends', async () => {
  const { proxy } = await scene(echo);
  const connection = await RawConnection.open(proxy.url);
  proxy.delay(100);
  const start = performance.now();
  connection.send(get('/slow'));
  await until(
    () => proxy.requests.length,
    (count) => count === 1,
  );
  proxy.heal();
  connection.send(get('/fast'));
  const answers = await connection.wholeAnswers(2);
  expect(answers.map(({ body }) => body)).toEqual(['/v2/keys/slow', '/v2/keys/fast']);
  // Only a lower bound, so a slow machine cannot fail it. A timer may fire a millisecond early.
  expect(performance.now() - start).toBeGreaterThan(98);
});

test('cut() resets every open connection once, and closes the connections to the server', async () => {
  const { proxy, server } = await scene(echo);
  const [one, two] = [await RawConnection.open(proxy.url), await RawConnection.open(proxy.url)];
  await one.send(get('/a')).wholeAnswers(1);
  const errors = Promise.all([one, two].map(({ socket }) => errorOf(socket)));
  proxy.cut();
  expect(await errors).toEqual(['ECONNRESET', 'ECONNRESET']);
  await until(
    () => [proxy.connections, server.openSockets],
    ([here, there]) => here === 0 && there === 0,
  );
  const three = await RawConnection.open(proxy.url);
  await three.send(get('/b')).wholeAnswers(1);
});

test('after refuse() new connections are reset and open ones still work', async () => {
  const { proxy } = await scene(echo);
  const before = await RawConnection.open(proxy.url);
  proxy.refuse();
  expect(await refusal(proxy)).toBe('ECONNRESET');
  await before.send(get('/a')).wholeAnswers(1);
  proxy.heal();
  await (await RawConnection.open(proxy.url)).send(get('/b')).wholeAnswers(1);
  expect(proxy.accepted).toBe(3);
});

test('a black hole of requests keeps them from the server, and the client sees no error', async () => {
  const { proxy, server } = await scene(echo);
  const open = await RawConnection.open(proxy.url);
  await open.send(get('/before')).wholeAnswers(1);
  proxy.blackHole('requests');
  const fresh = await RawConnection.open(proxy.url);
  fresh.send(get('/fresh'));
  open.send(get('/open'));
  await expectSilence(open);
  await expectSilence(fresh);
  expect(server.requests).toEqual([get('/before')]);
  expect(proxy.requests.map(({ path }) => path).sort()).toEqual(['/v2/keys/before', '/v2/keys/fresh', '/v2/keys/open']);
});

test('a black hole of answers lets the server carry out requests, and the client gets no answer', async () => {
  const { proxy, server } = await scene(echo);
  const open = await RawConnection.open(proxy.url);
  await open.send(get('/before')).wholeAnswers(1);
  proxy.blackHole('answers');
  const fresh = await RawConnection.open(proxy.url);
  open.send(put('/open', '1'));
  fresh.send(put('/fresh', '1'));
  await until(
    () => server.requests.length,
    (count) => count === 3,
  );
  await expectSilence(open);
  await expectSilence(fresh, '');
});

test('after heal() old connections stay silent and new ones work', async () => {
  const { proxy, server } = await scene(echo);
  const open = await RawConnection.open(proxy.url);
  await open.send(get('/before')).wholeAnswers(1);
  proxy.blackHole('both');
  const during = await RawConnection.open(proxy.url);
  proxy.heal();
  open.send(get('/lost'));
  during.send(get('/lost'));
  await (await RawConnection.open(proxy.url)).send(get('/after')).wholeAnswers(1);
  await expectSilence(open);
  await expectSilence(during, '');
  expect(server.requests).toEqual([get('/before'), get('/after')]);
  expect(server.openSockets).toBe(2);
  open.hangUp();
  during.hangUp();
  await until(
    () => [server.openSockets, proxy.connections],
    ([there, here]) => there === 1 && here === 1,
  );
});

test('a client behind a black hole does not notice that the server has died', async () => {
  const { proxy, server } = await scene(silent);
  const polling = await RawConnection.open(proxy.url);
  polling.send(poll('/x'));
  await server.nextRequest();
  proxy.blackHole('both');
  await server.stop();
  await expectSilence(polling, '');
});

test('swallow() loses one answer after etcd has carried out the request, and other connections still work', async () => {
  const key = `/proxy-${randomUUID()}`;
  const proxy = await useProxy(inject('etcd'));
  const swallowed = proxy.swallow(({ method, path }) => method === 'PUT' && path.endsWith(key));
  const [writer, reader] = [await RawConnection.open(proxy.url), await RawConnection.open(proxy.url)];
  await writer.send(get(key)).wholeAnswers(1);
  const before = writer.text;
  writer.send(put(key, 'done'));
  expect(await swallowed).toBe(201);
  const [read] = await reader.send(get(key)).wholeAnswers(1);
  expect(read?.body).toContain('"value":"done"');
  await expectSilence(writer, before);
  const again = await RawConnection.open(proxy.url);
  expect((await again.send(put(key, 'twice')).wholeAnswers(1))[0]?.status).toBe(200);
});

test('the proxy keeps its port when etcd is killed, and resets connections until etcd has restarted', async () => {
  const etcd = await startEtcd();
  onTestFinished(() => etcd.stop());
  const proxy = await useProxy(etcd.url);
  const polling = await RawConnection.open(proxy.url);
  await polling.send(poll('/x')).begun(1);
  await etcd.kill();
  await until(
    () => polling.socket.readableEnded || polling.socket.closed,
    (over) => over,
  );
  expect(await refusal(proxy)).toBe('ECONNRESET');
  await noConnections(proxy);
  await etcd.restart();
  const [answered] = await (await RawConnection.open(proxy.url)).send(get('/_ready')).wholeAnswers(1);
  expect(answered?.status).toBe(200);
});

test('stop() leaves no socket on either side, whatever state the connections are in', async () => {
  const { proxy, server } = await scene(silent);
  const connections = [await RawConnection.open(proxy.url), await RawConnection.open(proxy.url)];
  for (const connection of connections) connection.send(poll('/x'));
  await server.nextRequest();
  await server.nextRequest();
  proxy.blackHole('both');
  connections.push(await RawConnection.open(proxy.url));
  proxy.delay(60_000);
  await proxy.stop();
  await Promise.all(connections.map((connection) => connection.closed()));
  await until(
    () => server.openSockets,
    (count) => count === 0,
  );
  expect(proxy.connections).toBe(0);
});

async function scene(handler: TcpHandler) {
  const server = await startTcpServer(handler);
  onTestFinished(() => server.stop());
  return { server, proxy: await useProxy(server.url) };
}

async function useProxy(target: string) {
  const proxy = await startTcpProxy(target);
  onTestFinished(() => proxy.stop());
  return proxy;
}

/** Resolves to the error code of a new connection, which may end before it is established. */
const refusal = ({ url }: TcpProxy) => errorOf(connect(Number(new URL(url).port), '127.0.0.1'));

async function errorOf(socket: Socket): Promise<string | undefined> {
  const [error] = (await once(socket, 'error')) as [NodeJS.ErrnoException];
  return error.code;
}

const noConnections = (proxy: TcpProxy) =>
  until(
    () => proxy.connections,
    (count) => count === 0,
  );
