// What costs the server much time or memory, if anything does: bodies of the maximum size, watches that are not read, answers with all
// keys of the store.
import { setImmediate as turn } from 'node:timers/promises';
import { describe, expect, test } from 'vitest';
import { systemClock } from '../../../../src/base/time.ts';
import { Budget } from '../../../../src/server/budget.ts';
import { ManualClock } from '../../../support/manual-clock.ts';
import { expectUnharmed, type OpenServer, serveOpenly, waiting } from '../../../support/open-server.ts';
import { RawConnection } from '../../../support/raw-connection.ts';
import { until } from '../../../support/until.ts';
import { base64, post, V3 } from '../../fronts.ts';
import { linesOf, linesUpTo } from '../lines.ts';
import { put } from '../requests.ts';

const MIB = 2 ** 20;
const LONGEST = V3.longestBody;
const KEY = base64('/k');
const ALL = { key: base64('\0'), range_end: base64('\0') };
const create = (options: object = {}): string => JSON.stringify({ create_request: { key: KEY, ...options } });

async function open(etcd: OpenServer, text: string): Promise<RawConnection> {
  const client = await RawConnection.open(etcd.url);
  return client.send(text);
}

/** Returns `unit` so often that it has the length of the longest body. */
const full = (unit: string, taken = 0): string => unit.repeat(Math.floor((LONGEST - taken) / unit.length));

const within = (begin: string, unit: string, end: string): string =>
  `${begin}${full(unit, begin.length + end.length)}${end}`;

test.each([
  ['a string', within('{"name":"', 'x', '"}')],
  ['a string without an end', within('{"name":"', 'x', '')],
  ['backslashes', within('{"name":"', '\\\\', '"}')],
  ['escaped quotes', within('{"name":"', '\\"', '"}')],
  ['escapes', within('{"name":"', '\\u0000', '"}')],
  ['quotes', full('"')],
  ['opening brackets', full('[')],
  ['closing brackets', full(']')],
  ['empty arrays', full('[]')],
  ['empty objects', full('{}')],
  ['an array of arrays', within('{"filters":[', '[],', '[]]}')],
  ['an array of numbers', within('{"filters":[', '1,', '1]}')],
  ['bytes as numbers', within('{"key":[', '1,', '1]}')],
  ['numbers', full('1 ')],
  ['digits', full('1')],
  ['digits of an integer', within('{"lease":', '1', '}')],
  ['digits of an integer in text', within('{"lease":"', '1', '"}')],
  ['digits behind a point', within('{"lease":1.', '1', '}')],
  ['digits and a letter', within('{"lease":', '1', 'x}')],
  ['an exponent', within('{"lease":1e', '9', '}')],
  ['minus signs', within('{"lease":', '-', '}')],
  ['long integers', within('{"filters":[', '12345678901234567890,', '1]}')],
  ['keys', `{${Array.from({ length: LONGEST / 12 }, (_, i) => `"${i.toString(36).padStart(6, '0')}":1`).join(',')}}`],
  ['one key, many times', within('{', '"key":"",', '"key":""}')],
  ['base64', within('{"key":"', 'A', '"}')],
  ['padding of base64', within('{"key":"', '=', '"}')],
  ['line ends in base64', within('{"key":"', '\\n', '"}')],
  ['spaces', full(' ')],
  ['spaces in an object', within('{', ' ', '}')],
  ['letters', full('x')],
])('a body full of %s is answered, and leaves nothing behind', async (_, body) => {
  const etcd = await serveOpenly();
  for (const path of ['/kv/put', '/kv/txn', '/lease/keepalive', '/watch']) {
    const client = await open(etcd, post(path, body) + V3.get('/k'));
    // A watch without requests has no answer, in etcd too.
    if (path === '/watch') client.halfClose();
    await until(
      () => client.socket.closed || client.text.includes('"raft_term"') || client.answers.length > 0,
      Boolean,
    );
    client.hangUp();
  }
  expect(etcd.v3.watchers).toBe(0);
  await expectUnharmed(etcd);
});

describe('many watches of a stream', () => {
  test('are 10,000 at most: further ones are refused, and the others go on', async () => {
    const etcd = await serveOpenly();
    const client = await open(etcd, post('/watch', create().repeat(10_001)));
    const lines = await linesUpTo(client, 10_001);
    expect(lines.at(-2)).toMatchObject({ watch_id: '9999', created: true });
    expect(lines.at(-1)).toMatchObject({
      watch_id: '-1',
      canceled: true,
      cancel_reason: 'limit of 10000 watches of one stream reached',
    });
    expect(etcd.v3.watchers).toBe(10_000);
    V3.set(etcd, '/k', '1');
    const more = await linesUpTo(client, 20_001);
    expect(more.slice(10_001).map(({ watch_id: id = '0' }) => Number(id))).toEqual(
      Array.from({ length: 10_000 }, (_, i) => i),
    );
    client.hangUp();
    await expectUnharmed(etcd);
  });

  test('may be canceled in the same body, which makes room for others', async () => {
    const etcd = await serveOpenly();
    const pair = create({ watch_id: '7' }) + JSON.stringify({ cancel_request: { watch_id: '7' } });
    const client = await open(etcd, post('/watch', pair.repeat(12_000) + create()));
    const lines = await linesUpTo(client, 24_001);
    expect(lines.filter(({ cancel_reason: reason }) => reason)).toEqual([]);
    expect(etcd.v3.watchers).toBe(1);
    client.hangUp();
    await expectUnharmed(etcd);
  });
});

test('a watch that is not read while a hundred thousand events occur is canceled, and costs little memory', async () => {
  const budget = new Budget(64 * MIB);
  const etcd = await serveOpenly(systemClock, { budget, patience: 240_000 });
  const client = await open(etcd, post('/watch', create()));
  await waiting(etcd, 1);
  await linesUpTo(client, 1);
  client.socket.pause();
  let most = 0;
  for (let i = 0; i < 100_000; i += 1) {
    etcd.v3.put(put({ key: '/k', value: `${i}`.padEnd(10_000, 'x') }));
    most = Math.max(most, budget.used);
    if (i % 100 === 0) await turn();
  }
  expect(most).toBeGreaterThan(4 * MIB);
  expect(most).toBeLessThan(6 * MIB);
  client.socket.resume();
  await until(
    () => client.text,
    (text) => text.includes('"canceled":true'),
  );
  const lines = linesOf(client);
  const revisions = lines.flatMap(({ events = [] }) => events.map(({ kv }) => Number(kv.mod_revision)));
  expect(revisions.length).toBeGreaterThan(100);
  expect(revisions).toEqual(revisions.map((_, i) => i + 2));
  expect(lines.at(-1)).toMatchObject({ canceled: true, compact_revision: `${etcd.v3.compacted}` });
  client.hangUp();
  await expectUnharmed(etcd);
  expect(budget.used).toBe(0);
});

test('a hundred watches on a slow connection each get all events, and cost little memory', async () => {
  const budget = new Budget(64 * MIB);
  const etcd = await serveOpenly(systemClock, { budget });
  const client = await open(etcd, post('/watch', create().repeat(100)));
  await linesUpTo(client, 100);
  client.socket.pause();
  let most = 0;
  for (let i = 0; i < 20; i += 1) {
    V3.set(etcd, '/k', 'x'.repeat(20_000));
    most = Math.max(most, budget.used);
    await turn();
  }
  client.socket.resume();
  await until(
    () => {
      most = Math.max(most, budget.used);
      return client.text.length;
    },
    (length) => length > 100 * 20 * 20_000 * (4 / 3),
  );
  expect(most).toBeLessThan(8 * MIB);
  const eventsOf = () =>
    linesOf(client).flatMap(({ watch_id = '0', events = [] }) => events.map(({ kv }) => [watch_id, kv.mod_revision]));
  const events = await until(eventsOf, ({ length }) => length >= 2000);
  for (let id = 0; id < 100; id += 1)
    expect(events.filter(([watch]) => watch === `${id}`).map(([, revision]) => revision)).toEqual(
      Array.from({ length: 20 }, (_, i) => `${i + 2}`),
    );
  client.hangUp();
  await expectUnharmed(etcd);
});

test('watches use the budget of memory: those beyond it are refused, and others go on', async () => {
  const budget = new Budget(16 * MIB);
  const etcd = await serveOpenly(systemClock, { budget });
  const client = await open(etcd, post('/watch', create().repeat(10_000)));
  await until(
    () => client.text,
    (text) => text.includes('"cancel_reason"') || client.socket.closed,
  );
  expect(etcd.v3.watchers).toBeLessThan(4 * 1024);
  client.hangUp();
  await expectUnharmed(etcd);
  expect(budget.used).toBe(0);
});

test('an answer of more than 128 MiB is refused to a reader, and a writer is cut off behind its write', async () => {
  const etcd = await serveOpenly();
  for (let i = 0; i < 110; i += 1) V3.set(etcd, `/k/${i}`, 'x'.repeat(MIB));
  const reads = [
    post('/kv/range', ALL),
    post('/kv/txn', { success: [{ request_range: ALL }] }),
    post('/kv/txn', { success: Array.from({ length: 128 }, () => ({ request_range: ALL })) }),
  ];
  const reader = await open(etcd, reads.join(''));
  const answers = await reader.wholeAnswers(3);
  for (const { status, body } of answers) {
    expect(status).toBe(503);
    expect(body).toMatch(V3.overloaded);
  }
  const watcher = await open(etcd, post('/watch', JSON.stringify({ create_request: { ...ALL, prev_kv: true } })));
  await waiting(etcd, 1);
  const writer = await open(etcd, post('/kv/deleterange', { ...ALL, prev_kv: true }));
  expect(await writer.closed()).toBe('');
  await watcher.closed();
  expect(etcd.v3.leases.ids).toEqual([]);
  expect(V3.valueOf(etcd, '/k/0')).toBeUndefined();
  reader.hangUp();
  await expectUnharmed(etcd);
});

test('a hundred thousand leases that expire at once leave no key', async () => {
  const clock = new ManualClock();
  const etcd = await serveOpenly(clock);
  for (let i = 1; i <= 100_000; i += 1) {
    etcd.v3.leases.grant(BigInt(i), 5n);
    etcd.v3.put(put({ key: `/k/${i}`, lease: BigInt(i) }));
  }
  clock.advance(10_000);
  expect(etcd.v3.leases.ids).toEqual([]);
  const client = await open(etcd, post('/kv/range', { ...ALL, count_only: true }));
  expect((await client.wholeAnswers(1))[0]?.body).not.toContain('count');
  client.hangUp();
  await expectUnharmed(etcd);
});
