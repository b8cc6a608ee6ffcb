import type { Socket } from 'node:net';
import { expect, test } from 'vitest';
import { EtcdConnectionFailed, EtcdUnusableAnswer } from '../../../src/errors.ts';
import { connect, rejection, serve } from '../../support/clients.ts';
import { answer, type TcpHandler } from '../../support/tcp-server.ts';
import { until } from '../../support/until.ts';
import { got, rawAnswer } from '../../support/v2-answers.ts';

const KEY = '/_locks/x/00000000000000000004';
const MEBIBYTE = 1024 * 1024;
const HEAD = 'HTTP/1.1 200 OK\r\nx-etcd-index: 7\r\n';
const good = answer(rawAnswer(200, got(KEY)));

/** A member whose answer has no end. Counts the bytes that the client received. */
async function endless(head: string, part: string) {
  const sockets = new Set<Socket>();
  const pour: TcpHandler = (socket) => {
    sockets.add(socket);
    socket.write(HEAD + head);
    const writeMore = (): void => {
      while (part !== '' && !socket.destroyed && socket.write(part));
    };
    socket.on('drain', writeMore);
    writeMore();
  };
  const { url, requests } = await serve(pour);
  const allClosed = () =>
    until(
      () => [...sockets].filter((socket) => !socket.destroyed).length,
      (open) => open === 0,
    );
  const received = () => [...sockets].reduce((sum, { bytesWritten }) => sum + bytesWritten, 0);
  return { url, requests, allClosed, received };
}

const CHUNKED = 'transfer-encoding: chunked\r\n\r\n';
const bigChunk = `${MEBIBYTE.toString(16)}\r\n${'x'.repeat(MEBIBYTE)}\r\n`;

test.each([
  // On a busy machine a read would otherwise be sent again before its answer is too long.
  ['a read', (client: ReturnType<typeof connect>) => client.get(KEY, { attemptTimeout: 120 })],
  ['a long poll', (client: ReturnType<typeof connect>) => client.watch(KEY, { after: 7 })],
  ['an append', (client: ReturnType<typeof connect>) => client.createInOrder('/_locks/x', 'u1')],
  ['a removal', (client: ReturnType<typeof connect>) => client.delete(KEY)],
])('an endless answer to %s is an error after 64 MiB', async (_, call) => {
  const etcd = await endless(CHUNKED, bigChunk);
  const error = await rejection(call(connect({ endpoints: etcd.url, readTimeout: 120 })), EtcdUnusableAnswer);
  expect(error.message).toBe(`${etcd.url}: answered 200 with more than 64 MiB`);
  expect(error).toMatchObject({ httpStatus: 200, outcomeUnknown: true });
  await etcd.allClosed();
  // Includes the contents of the sockets' buffers.
  expect(etcd.received()).toBeLessThan(96 * MEBIBYTE);
});

test('an endless answer in very small chunks is an error much earlier, because each chunk costs extra memory', async () => {
  const etcd = await endless(CHUNKED, '1\r\nx\r\n'.repeat(10_000));
  const error = await rejection(
    connect({ endpoints: etcd.url, readTimeout: 120 }).get(KEY, { attemptTimeout: 120 }),
    EtcdUnusableAnswer,
  );
  expect(error.message).toMatch(/more than 64 MiB$/);
  await etcd.allClosed();
  expect(etcd.received()).toBeLessThan(16 * MEBIBYTE);
});

test('a too large answer with a declared length is refused before its body, and another member is asked', async () => {
  const large = await endless('content-length: 1825361100\r\n\r\n', '');
  const other = await serve(good);
  expect((await connect({ endpoints: [large.url, other.url] }).get(KEY)).node.key).toBe(KEY);
  expect([large.requests.length, other.requests.length]).toEqual([1, 1]);
  const error = await rejection(
    connect({ endpoints: large.url }).get(KEY, { attemptTimeout: 120 }),
    EtcdUnusableAnswer,
  );
  expect(error.message).toContain('answered 200 with more than 64 MiB (1825361100 bytes)');
  await large.allClosed();
  expect(large.received()).toBeLessThan(1000);
});

test('an answer with endless headers is an error, and another member is asked', async () => {
  const [large, other] = [await endless('', `x-more: ${'x'.repeat(1000)}\r\n`), await serve(good)];
  expect((await connect({ endpoints: [large.url, other.url] }).get(KEY)).node.key).toBe(KEY);
  const error = await rejection(connect({ endpoints: large.url }).get(KEY), EtcdConnectionFailed);
  expect(error.message).toMatch(/header/i);
  await large.allClosed();
  expect(large.received()).toBeLessThan(16 * MEBIBYTE);
});

test('a listing of 200,000 entries is accepted', async () => {
  const entries = Array.from({ length: 200_000 }, (_, at) => ({
    key: `${KEY}/${String(at).padStart(20, '0')}`,
    value: 'a2f0f1c9f5d04b6c8a5e0a3f6f1e2d3c',
    expiration: '2026-01-01T00:00:00.000000001Z',
    ttl: 60,
    modifiedIndex: at + 1,
    createdIndex: at + 1,
  }));
  const etcd = await serve(answer(rawAnswer(200, got(KEY, { value: undefined, dir: true, nodes: entries }))));
  const { node } = await connect({ endpoints: etcd.url }).get(KEY, { recursive: true });
  expect(node.nodes.length).toBe(200_000);
  expect(node.nodes.at(-1)).toEqual({ ...entries.at(-1), dir: false, nodes: [] });
});
