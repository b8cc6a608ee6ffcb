// Bytes on a connection that Node's parser and etcd's understand differently. etcd and the embedded server give the same answers,
// carry out the same writes, and close the connection in the same cases.
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { EmbeddedEtcd } from '../../src/server/index.ts';
import { type EtcdMember, startEtcd } from '../support/etcd.ts';
import { RawConnection, request } from '../support/raw-connection.ts';
import { base64, FRONTS, post } from './fronts.ts';

let real: EtcdMember;
let embedded: EmbeddedEtcd;

beforeAll(async () => {
  [real, embedded] = await Promise.all([startEtcd(), EmbeddedEtcd.start()]);
});

afterAll(() => Promise.all([real.stop(), embedded.stop()]));

beforeEach(async () => {
  for (const { url } of [real, embedded]) {
    const client = await RawConnection.open(url);
    client.send(request('DELETE', '/v2/keys/k') + post('/kv/deleterange', { key: base64('/k') }));
    await client.wholeAnswers(2);
  }
});

const GET = 'GET /v2/keys/nothing HTTP/1.1\r\nHost: localhost\r\n\r\n';
const get = (headers: string): string => `GET /v2/keys/nothing HTTP/1.1\r\n${headers}\r\n`;

/** Sends the bytes, and behind them a request that is answered only if the connection is still open. */
async function outcomeOf(url: string, bytes: string) {
  const client = await RawConnection.open(url);
  client.send(bytes + get('Host: localhost\r\nConnection: close\r\n'));
  const text = await client.closed();
  return { statuses: client.answers.map(({ status }) => status), text };
}

/** Returns the index of v2 and the revision of v3: each write adds 1 to one of them. */
async function writesOn(url: string): Promise<number> {
  const client = await RawConnection.open(url);
  client.send(GET + post('/kv/range', { key: base64('/k') }));
  const [v2, v3] = await client.wholeAnswers(2);
  client.hangUp();
  return Number(v2?.headers['x-etcd-index']) + Number(JSON.parse(v3?.body ?? '').header.revision);
}

describe.each(FRONTS)('on %s,', (_name, { head, body, created }) => {
  const LENGTH = `Content-Length: ${body.length}\r\n`;
  const CHUNKS = `${body.length.toString(16)}\r\n${body}\r\n0\r\n\r\n`;
  const put = (headers: string, rest = '', version = '1.1'): string =>
    `${head.replace('HTTP/1.1', `HTTP/${version}`)}${headers}\r\n${rest}`;

  test.each<[string, number[], string]>([
    ['two hosts', [400], get('Host: localhost\r\nHost: localhost\r\n')],
    ['two hosts that differ', [400], get('Host: localhost\r\nhost: 127.0.0.1\r\n')],
    ['two hosts in HTTP/1.0', [400], GET.replace('1.1', '1.0').replace('\r\n\r\n', '\r\nHost: localhost\r\n\r\n')],
    ['a write with two hosts', [400], put(`Host: localhost\r\n${LENGTH}`, body)],
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
    ['an empty encoding', [501], put(`Transfer-Encoding: \r\n${LENGTH}`, body)],
    ['an unknown encoding of a read', [501], get('Host: localhost\r\nTransfer-Encoding: gzip\r\n')],
    ['a read, and gzip before chunked', [404, 501], GET + put('Transfer-Encoding: gzip, chunked\r\n', CHUNKS)],
    ['chunked in capitals', [created, 404], put('Transfer-Encoding: CHUNKED\r\n', CHUNKS)],
    ['an expectation', [417], get('Host: localhost\r\nExpect: x\r\n')],
    ['a write with an expectation', [417], put(`Expect: x\r\n${LENGTH}`, body)],
    ['a read, and an expectation', [404, 417], GET + get('Host: localhost\r\nExpect: x\r\n')],
    [
      'an expectation, and an offer to upgrade',
      [404, 417],
      GET + get('Host: localhost\r\nExpect: x\r\n') + get('Host: localhost\r\nConnection: Upgrade\r\nUpgrade: x\r\n'),
    ],
    ['an empty expectation', [404, 404], get('Host: localhost\r\nExpect:\r\n')],
    ['garbage behind the last write', [created], put(`Connection: close\r\n${LENGTH}`, `${body}garbage\r\n\r\n`)],
    ['a read behind the last write', [created], put(`Connection: close\r\n${LENGTH}`, body + GET)],
    [
      'a read behind the last of two writes',
      [created, 200],
      put(LENGTH, body) + put(`Connection: keep-alive, close\r\n${LENGTH}`, body + GET),
    ],
    ['garbage behind a write in HTTP/1.0', [created], put(LENGTH, `${body}garbage`, '1.0')],
    ['garbage behind a write', [created, 400], put(LENGTH, `${body}garbage\r\n\r\n`)],
    ['garbage behind a read', [404, 400], `${GET}\x00\x01garbage\r\n\r\n`],
  ])('%s', async (_, expected, bytes) => {
    for (const { url } of [real, embedded]) {
      const before = await writesOn(url);
      expect((await outcomeOf(url, bytes)).statuses).toEqual(expected);
      const writes = expected.filter((status) => status === 200 || status === 201).length;
      expect(await writesOn(url)).toBe(before + writes);
    }
  });

  test('chunks in HTTP/1.0 are refused. etcd carries out the request without its body', async () => {
    const bytes = put('Transfer-Encoding: chunked\r\n', CHUNKS, '1.0');
    expect((await outcomeOf(real.url, bytes)).text).not.toMatch(/400 Bad Request$/);
    expect((await outcomeOf(embedded.url, bytes)).text).toMatch(
      /^HTTP\/1\.1 400 Bad Request\r\n.*\r\n400 Bad Request$/s,
    );
  });
});

test('a chunk whose size is no number, in a body that is ignored, closes the connection behind the answer', async () => {
  const bytes = `${get('Host: localhost\r\nTransfer-Encoding: chunked\r\n')}zz\r\nvalue=1\r\n`;
  for (const { url } of [real, embedded]) expect((await outcomeOf(url, bytes)).statuses).toEqual([404]);
});
