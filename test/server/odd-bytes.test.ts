// Bytes on a connection that Node's parser and etcd's understand differently. etcd and the embedded server give the same answers,
// carry out the same writes, and close the connection in the same cases.
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { RawConnection } from '../support/raw-connection.ts';
import { answerOf } from './differential/answers.ts';
import { type Both, level, openBoth } from './differential/both.ts';

let both: Both;
let index: number;

beforeAll(async () => {
  both = await openBoth();
});

afterAll(() => both.close());

beforeEach(async () => {
  const removal = { method: 'DELETE', target: '/v2/keys/k' };
  await Promise.all([both.real, both.embedded].map((server) => answerOf(server, removal)));
  index = await level(both);
});

const FORM = 'Content-Type: application/x-www-form-urlencoded\r\n';
const CHUNKS = '7\r\nvalue=1\r\n0\r\n\r\n';
const GET = 'GET /v2/keys/nothing HTTP/1.1\r\nHost: localhost\r\n\r\n';
const put = (headers: string, rest = '', version = '1.1'): string =>
  `PUT /v2/keys/k HTTP/${version}\r\nHost: localhost\r\n${FORM}${headers}\r\n${rest}`;
const get = (headers: string): string => `GET /v2/keys/nothing HTTP/1.1\r\n${headers}\r\n`;

/** Sends the bytes, and behind them a request that is answered only if the connection is still open. */
async function outcomeOf(url: string, bytes: string) {
  const client = await RawConnection.open(url);
  client.send(bytes + get('Host: localhost\r\nConnection: close\r\n'));
  const text = await client.closed();
  return { statuses: client.answers.map(({ status }) => status), text };
}

const ACCEPTED = 201;

test.each<[string, number[], string]>([
  ['two hosts', [400], get('Host: localhost\r\nHost: localhost\r\n')],
  ['two hosts that differ', [400], get('Host: localhost\r\nhost: 127.0.0.1\r\n')],
  ['two hosts in HTTP/1.0', [400], GET.replace('1.1', '1.0').replace('\r\n\r\n', '\r\nHost: localhost\r\n\r\n')],
  ['a write with two hosts', [400], put('Host: localhost\r\nContent-Length: 7\r\n', 'value=1')],
  ['no host', [400], get('')],
  ['an empty host', [404, 404], get('Host:\r\n')],
  ['a read, and a request without a host', [404, 400], GET + get('')],
  ['gzip before chunked', [501], put('Transfer-Encoding: gzip, chunked\r\n', CHUNKS)],
  ['gzip', [501], put('Transfer-Encoding: gzip\r\n', CHUNKS)],
  ['chunked twice', [501], put('Transfer-Encoding: chunked, chunked\r\n', CHUNKS)],
  ['chunked on two lines', [501], put('Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n', CHUNKS)],
  ['identity before chunked', [501], put('Transfer-Encoding: identity, chunked\r\n', CHUNKS)],
  [
    'identity and chunked on two lines',
    [501],
    put('Transfer-Encoding: identity\r\nTransfer-Encoding: chunked\r\n', CHUNKS),
  ],
  ['a comma before chunked', [501], put('Transfer-Encoding: ,chunked\r\n', CHUNKS)],
  ['a comma behind chunked', [501], put('Transfer-Encoding: chunked,\r\n', CHUNKS)],
  ['chunked with a parameter', [501], put('Transfer-Encoding: chunked;q=1\r\n', CHUNKS)],
  ['an empty encoding', [501], put('Transfer-Encoding: \r\nContent-Length: 7\r\n', 'value=1')],
  ['an unknown encoding of a read', [501], get('Host: localhost\r\nTransfer-Encoding: gzip\r\n')],
  ['a read, and gzip before chunked', [404, 501], GET + put('Transfer-Encoding: gzip, chunked\r\n', CHUNKS)],
  ['chunked in capitals', [ACCEPTED, 404], put('Transfer-Encoding: CHUNKED\r\n', CHUNKS)],
  ['an expectation', [417], get('Host: localhost\r\nExpect: x\r\n')],
  ['a write with an expectation', [417], put('Expect: x\r\nContent-Length: 7\r\n', 'value=1')],
  ['a read, and an expectation', [404, 417], GET + get('Host: localhost\r\nExpect: x\r\n')],
  [
    'an expectation, and an offer to upgrade',
    [404, 417],
    GET + get('Host: localhost\r\nExpect: x\r\n') + get('Host: localhost\r\nConnection: Upgrade\r\nUpgrade: x\r\n'),
  ],
  ['an empty expectation', [404, 404], get('Host: localhost\r\nExpect:\r\n')],
  [
    'garbage behind the last write',
    [ACCEPTED],
    put('Connection: close\r\nContent-Length: 7\r\n', 'value=1garbage\r\n\r\n'),
  ],
  ['a read behind the last write', [ACCEPTED], put('Connection: close\r\nContent-Length: 7\r\n', `value=1${GET}`)],
  [
    'a read behind the last of two writes',
    [ACCEPTED, 200],
    put('Content-Length: 7\r\n', 'value=1') +
      put('Connection: keep-alive, close\r\nContent-Length: 7\r\n', `value=2${GET}`),
  ],
  ['garbage behind a write in HTTP/1.0', [ACCEPTED], put('Content-Length: 7\r\n', 'value=1garbage', '1.0')],
  ['garbage behind a write', [ACCEPTED, 400], put('Content-Length: 7\r\n', 'value=1garbage\r\n\r\n')],
  ['garbage behind a read', [404, 400], `${GET}\x00\x01garbage\r\n\r\n`],
  [
    'a chunk whose size is no number, in a body that is ignored',
    [404],
    `${get('Host: localhost\r\nTransfer-Encoding: chunked\r\n')}zz\r\nvalue=1\r\n`,
  ],
])('%s', async (_, expected, bytes) => {
  const [real, embedded] = await Promise.all([both.real, both.embedded].map(({ url }) => outcomeOf(url, bytes)));
  expect(real?.statuses).toEqual(expected);
  expect(embedded?.statuses).toEqual(expected);
  const writes = expected.filter((status) => status === 200 || status === ACCEPTED).length;
  expect(await level(both)).toBe(index + writes + 1);
});

test('chunks in HTTP/1.0 are refused. etcd carries out the request without its body', async () => {
  const bytes = put('Transfer-Encoding: chunked\r\n', CHUNKS, '1.0');
  const [real, embedded] = await Promise.all([both.real, both.embedded].map(({ url }) => outcomeOf(url, bytes)));
  expect(real?.text).toContain('"value":""');
  expect(embedded?.text).toMatch(/^HTTP\/1\.1 400 Bad Request\r\n.*\r\n400 Bad Request$/s);
});
