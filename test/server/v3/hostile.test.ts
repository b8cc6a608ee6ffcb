// What a hostile client can do only to the gateway of v3. Hang-ups, framing and long bodies are in the tests of both APIs.
import { describe, expect, test } from 'vitest';
import { expectUnharmed, type OpenServer, requests, serveOpenly, waiting } from '../../support/open-server.ts';
import { type RawAnswer, RawConnection } from '../../support/raw-connection.ts';
import { until } from '../../support/until.ts';
import { base64, post, V3 } from '../fronts.ts';

const KEY = base64('/k');
const create = (options: object = {}): string => JSON.stringify({ create_request: { key: KEY, ...options } });

async function open(etcd: OpenServer, ...texts: readonly string[]): Promise<RawConnection> {
  const client = await RawConnection.open(etcd.url);
  return client.send(texts.join(''));
}

/** Sends a request, and returns the answer. */
async function answerTo(etcd: OpenServer, text: string): Promise<RawAnswer | undefined> {
  const client = await open(etcd, text);
  const [answer] = await client.wholeAnswers(1);
  client.hangUp();
  return answer;
}

const CANCELED =
  '{"error":{"grpc_code":1,"http_code":408,"message":"context canceled","http_status":"Request Timeout"}}';

describe('a watch', () => {
  test('in HTTP/1.0 gets its events, and the connection is closed when the client closes its half', async () => {
    const etcd = await serveOpenly();
    const client = await open(etcd, post('/watch', create()).replace('HTTP/1.1', 'HTTP/1.0'));
    await waiting(etcd, 1);
    V3.set(etcd, '/k', 'now');
    await until(
      () => client.text,
      (text) => V3.hasEvent(text, 'now'),
    );
    client.halfClose();
    expect(await client.closed()).toContain(`\n${CANCELED}`);
    await expectUnharmed(etcd);
  });

  test('ends with an error, as in etcd, when the client closes its half of the connection', async () => {
    const etcd = await serveOpenly();
    const client = await open(etcd, post('/watch', create()));
    await client.begun(1);
    client.halfClose();
    await client.closed();
    expect(client.answers).toMatchObject([{ status: 200, whole: true }]);
    expect(client.answers[0]?.body).toMatch(new RegExp(`"created":true}}\\n${CANCELED.replace(/[{}]/g, '\\$&')}$`));
    await expectUnharmed(etcd);
  });

  test('behind an unread answer begins when the client has read the answer', async () => {
    const etcd = await serveOpenly();
    for (let i = 0; i < 16; i += 1) V3.set(etcd, `/long/${i}`, 'x'.repeat(2 ** 20));
    const client = await RawConnection.open(etcd.url);
    client.socket.pause();
    const arrived = requests(etcd, 2);
    client.send(V3.list('/long') + V3.wait('/k'));
    await arrived;
    V3.set(etcd, '/other', '1');
    expect(etcd.v3.watchers).toBe(0);
    client.socket.resume();
    await waiting(etcd, 1);
    client.hangUp();
    await expectUnharmed(etcd);
  });

  test('whose body breaks off does not begin', async () => {
    const etcd = await serveOpenly();
    const arrived = requests(etcd, 1);
    const text = post('/watch', create() + create());
    const client = await open(etcd, text.slice(0, -1));
    await arrived;
    client.hangUp();
    await expectUnharmed(etcd);
  });
});

test('of the keep-alives in one body, 10,000 are answered', async () => {
  const etcd = await serveOpenly();
  const { id } = etcd.v3.leases.grant(0n, 60n);
  const answer = await answerTo(etcd, post('/lease/keepalive', JSON.stringify({ ID: `${id}` }).repeat(12_000)));
  const lines = (answer?.body ?? '').split('\n');
  expect(lines).toHaveLength(10_001);
  expect(lines.slice(0, -1).every((line) => line.endsWith(`"ID":"${id}","TTL":"60"}}`))).toBe(true);
  expect(JSON.parse(lines.at(-1) ?? '')).toMatchObject({
    error: { grpc_code: 8, message: 'limit of 10000 requests in one body reached' },
  });
  await expectUnharmed(etcd);
});

test.each([
  ['arrays', '['],
  ['objects', '{"key":'],
  ['arrays in a field that is ignored', '{"other":'.padEnd(100_009, '[')],
])('%s in a hundred thousand others are refused', async (_, begin) => {
  const etcd = await serveOpenly();
  const body = begin.length > 100_000 ? begin : begin.repeat(100_000);
  for (const path of ['/kv/put', '/kv/txn', '/watch', '/lease/keepalive']) {
    const answer = await answerTo(etcd, post(path, body));
    expect(answer?.status).toBeGreaterThanOrEqual(400);
    expect(answer?.body).toContain('exceeded max depth');
  }
  expect(V3.writes(etcd)).toBe(0);
  await expectUnharmed(etcd);
});

const PUT = { request_put: { key: KEY, value: '' } };
const nested = (depth: number, inner: object): object =>
  depth === 0 ? inner : { success: [{ request_txn: nested(depth - 1, inner) }] };

test.each([
  ['nested 300 deep', nested(300, { success: [PUT] })],
  [
    'of 128 operations with 8 each',
    {
      success: Array.from({ length: 128 }, () => ({
        request_txn: { success: Array.from({ length: 8 }, () => ({ request_range: { key: KEY } })) },
      })),
    },
  ],
  [
    'of 128 operations with 8 comparisons each',
    {
      success: Array.from({ length: 128 }, () => ({
        request_txn: { compare: Array.from({ length: 8 }, () => ({ key: KEY })) },
      })),
    },
  ],
])('a transaction %s is refused', async (_, txn) => {
  const etcd = await serveOpenly();
  const answer = await answerTo(etcd, post('/kv/txn', txn));
  expect(answer?.body).toContain('"etcdserver: too many operations in txn request"');
  expect(V3.writes(etcd)).toBe(0);
  await expectUnharmed(etcd);
});

test('a transaction nested 127 deep is carried out', async () => {
  const etcd = await serveOpenly();
  expect(await answerTo(etcd, post('/kv/txn', nested(127, { success: [PUT] })))).toMatchObject({ status: 200 });
  expect(V3.writes(etcd)).toBe(1);
});

test('a key of 1 MiB is written and read', async () => {
  const etcd = await serveOpenly();
  const key = 'k'.repeat(2 ** 20);
  expect(await answerTo(etcd, V3.put(key, '1'))).toMatchObject({ status: 200 });
  expect(V3.valueIn(await answerTo(etcd, V3.get(key)))).toBe('1');
  await expectUnharmed(etcd);
});

test('bytes that are not UTF-8 are allowed in text, and nowhere else in JSON', async () => {
  const etcd = await serveOpenly();
  const statuses = [];
  for (const body of [`{"key":"${KEY}","\xff":"\xc0\xaf"}`, `{"key":"${KEY}"\xff}`, '\xff{}'])
    statuses.push((await answerTo(etcd, post('/kv/put', body)))?.status);
  expect(statuses).toEqual([200, 400, 400]);
  expect(V3.writes(etcd)).toBe(1);
  await expectUnharmed(etcd);
});

test('an integer of a million digits is refused', async () => {
  const etcd = await serveOpenly();
  const digits = '9'.repeat(1_000_000);
  for (const lease of [digits, `"${digits}"`])
    expect(await answerTo(etcd, post('/kv/put', `{"key":"${KEY}","lease":${lease}}`))).toMatchObject({ status: 400 });
  await expectUnharmed(etcd);
});
