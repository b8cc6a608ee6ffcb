import { expect, test } from 'vitest';
import { Tally } from '../../../bench/setting/tally.mjs';

const GET = Buffer.from('GET /v2/keys/_locks/x?recursive=true HTTP/1.1\r\nhost: a\r\n\r\n');
const POLL = Buffer.from('GET /v2/keys/_locks/x/1?wait=true&waitIndex=2 HTTP/1.1\r\nhost: a\r\n\r\n');
const POST = Buffer.from('POST /v2/keys/_locks/x HTTP/1.1\r\nhost: a\r\ncontent-length: 7\r\n\r\nvalue=a');
const DELETE = Buffer.from('DELETE /v2/keys/_locks/x/1 HTTP/1.1\r\nhost: a\r\n\r\n');
const ANSWER = Buffer.from('HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}');
const BEGUN = Buffer.from('HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n');

test('a request after an answer begins a new round trip', () => {
  const tally = new Tally();
  const connection = tally.connection();
  for (const request of [POST, GET, DELETE]) {
    connection.request(request);
    connection.answer(ANSWER);
  }
  expect(tally.take()).toMatchObject({ requests: 3, trips: 3, kinds: { append: 1, read: 1, removal: 1 } });
});

test('requests without an answer in between belong to one round trip, on one connection or two', () => {
  const tally = new Tally();
  const [one, two] = [tally.connection(), tally.connection()];
  one.request(Buffer.concat([POST, GET]));
  two.request(GET);
  one.answer(Buffer.concat([ANSWER, ANSWER]));
  two.answer(ANSWER);
  expect(tally.take()).toMatchObject({ requests: 3, trips: 1, connections: 2 });
});

test('each message counts once, however its bytes are split', () => {
  const tally = new Tally();
  const connection = tally.connection();
  for (const byte of POST) connection.request(Buffer.of(byte));
  for (const byte of ANSWER) connection.answer(Buffer.of(byte));
  connection.request(DELETE);
  expect(tally.take()).toMatchObject({ requests: 2, trips: 2, kinds: { append: 1, removal: 1 } });
});

test('the headers of a long poll do not count as an answer', () => {
  const tally = new Tally();
  const [poll, call] = [tally.connection(), tally.connection()];
  poll.request(POLL);
  poll.answer(BEGUN);
  call.request(DELETE);
  expect(tally.take()).toMatchObject({ requests: 2, trips: 1, kinds: { poll: 1, removal: 1 } });
  poll.answer(Buffer.from('2\r\n{}\r\n0\r\n\r\n'));
  poll.request(GET);
  expect(tally.take()).toMatchObject({ requests: 1, trips: 1 });
});

test('requests to the gateway of etcd v3 have the kind of what they do', () => {
  const tally = new Tally();
  const connection = tally.connection();
  const posts = {
    append: ['/kv/txn', '{"success":[{"request_put":{}},{"request_range":{}}]}'],
    removal: ['/kv/txn', '{"success":[{"request_delete_range":{}}]}'],
    read: ['/kv/txn', '{"success":[{"request_range":{}},{"request_range":{"max_create_revision":"7"}}]}'],
    check: ['/kv/txn', '{"success":[{"request_range":{}}]}'],
    confirmation: ['/kv/txn', '{"success":[{"request_txn":{"success":[{"request_range":{}}]}}]}'],
    renewal: ['/lease/keepalive', '{"ID":"7"}'],
    poll: ['/watch', '{"create_request":{}}'],
    grant: ['/lease/grant', '{"TTL":"7"}'],
    revocation: ['/kv/lease/revoke', '{"ID":"7"}'],
    other: ['/maintenance/status', '{}'],
  };
  for (const [path = '', body = ''] of Object.values(posts)) connection.request(post(path, body));
  expect(tally.take().kinds).toEqual(Object.fromEntries(Object.keys(posts).map((kind) => [kind, 1])));
});

test('a message of a watch counts as an answer, although the watch continues', () => {
  const tally = new Tally();
  const [watch, call] = [tally.connection(), tally.connection()];
  watch.request(post('/watch', '{}'));
  watch.answer(BEGUN);
  watch.answer(Buffer.from('2\r\n{}\r\n'));
  call.request(DELETE);
  expect(tally.take()).toMatchObject({ requests: 2, trips: 2 });
});

test('bytes of requests and answers count, on all connections', () => {
  const tally = new Tally();
  const [one, two] = [tally.connection(), tally.connection()];
  one.request(GET);
  one.answer(ANSWER);
  two.request(POLL);
  expect(tally.take().bytes).toBe(GET.length + ANSWER.length + POLL.length);
  expect(tally.take().bytes).toBe(0);
});

test('connections count once when opened, and as open until closed', () => {
  const tally = new Tally();
  const [first] = [tally.connection(), tally.connection()];
  first.closed();
  expect(tally.take()).toMatchObject({ connections: 2, open: 1 });
  expect(tally.take()).toMatchObject({ connections: 0, open: 1 });
});

test('a call over HTTP/2 counts as one request, whatever its frames', () => {
  const tally = new Tally();
  const connection = tally.connection();
  const [settings, headers, data, trailers] = [frame(4, 0, 0), frame(1, 4, 1), frame(0, 0, 1, 'x'), frame(1, 5, 1)];
  connection.request(Buffer.concat([Buffer.from('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n'), settings, headers, data]));
  connection.answer(Buffer.concat([settings, headers, data, trailers]));
  connection.request(frame(1, 4, 3));
  expect(tally.take()).toMatchObject({ requests: 2, trips: 2, kinds: { rpc: 2 } });
});

const post = (path: string, body: string): Buffer =>
  Buffer.from(`POST /v3${path} HTTP/1.1\r\nhost: a\r\ncontent-length: ${body.length}\r\n\r\n${body}`);

function frame(type: number, flags: number, stream: number, payload = ''): Buffer {
  const head = Buffer.alloc(9);
  head.writeUIntBE(payload.length, 0, 3);
  head[3] = type;
  head[4] = flags;
  head.writeUInt32BE(stream, 5);
  return Buffer.concat([head, Buffer.from(payload)]);
}
