import { connect } from 'node:net';
import { expect, onTestFinished, test } from 'vitest';
import {
  answer,
  answerAfter,
  answerThenCut,
  httpAnswer,
  inTurn,
  silent,
  startTcpServer,
  type TcpHandler,
} from './tcp-server.ts';
import { until } from './until.ts';

test('the server passes each complete request to the next handler, also pipelined ones, and answers in order', async () => {
  const server = await serve(
    inTurn(answer(httpAnswer(201, {}, 'a')), answer(httpAnswer(200, { 'x-etcd-index': '7' }, 'b'))),
  );
  const post = 'POST /x HTTP/1.1\r\nhost: x\r\ncontent-length: 7\r\n\r\nvalue=1';
  const get = 'GET /x HTTP/1.1\r\nhost: x\r\n\r\n';
  const client = connect(server.port, '127.0.0.1');
  onTestFinished(() => {
    client.destroy();
  });
  let received = '';
  client.setEncoding('utf8').on('data', (text: string) => {
    received += text;
  });
  client.write(post.slice(0, 30));
  client.write(post.slice(30) + get);
  expect(await server.nextRequest()).toBe(post);
  expect(await server.nextRequest()).toBe(get);
  await until(
    () => received,
    (text) => /201 Scripted[\s\S]*\r\n\r\naHTTP[\s\S]*200 Scripted[\s\S]*x-etcd-index: 7[\s\S]*b$/.test(text),
  );
});

test('answerThenCut() closes the connection in the middle of a body', async () => {
  const server = await serve(answerThenCut(httpAnswer(200, {}, '{"action":"get"}').slice(0, -4)));
  const response = await fetch(server.url);
  expect(response.status).toBe(200);
  await expect(response.text()).rejects.toThrow('terminated');
});

test('answerAfter() delays the answer until a promise resolves', async () => {
  let letGo = () => {};
  const turn = new Promise<void>((resolve) => {
    letGo = resolve;
  });
  const server = await serve(answerAfter(turn, httpAnswer(200, {}, 'late')));
  const response = fetch(server.url);
  await server.nextRequest();
  letGo();
  expect(await (await response).text()).toBe('late');
});

test('a silent request stays unanswered until the server stops and closes its connection', async () => {
  const server = await serve(silent);
  const response = expect(fetch(server.url)).rejects.toThrow('fetch failed');
  await server.nextRequest();
  expect(server.openSockets).toBe(1);
  await server.stop();
  await response;
  expect(server.openSockets).toBe(0);
});

async function serve(handler: TcpHandler) {
  const server = await startTcpServer(handler);
  onTestFinished(() => server.stop());
  return server;
}
