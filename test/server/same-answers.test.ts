import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { until } from '../support/until.ts';
import { answerOf, get, put, sameAnswers } from './differential/answers.ts';
import { type Both, level, openBoth } from './differential/both.ts';
import { Asked, type Exchange, type Wanted } from './differential/exchange.ts';
import { masked } from './differential/mapping.ts';

let both: Both;
let index: number;

beforeAll(async () => {
  both = await openBoth();
});

afterAll(() => both.close());

beforeEach(async () => {
  index = await level(both);
});

const expectSame = (...requests: readonly Wanted[]): Promise<string[]> => sameAnswers(both, requests);

describe('etcd and the embedded server', () => {
  test.each([
    ['markup', '<a href="x">&amp;</a>'],
    ['control characters', '\u0000\u0001\b\t\n\v\f\r\u001b\u007f'],
    ['quotes and backslashes', '"\\\\b\\f\\"'],
    ['line separators', '\u2028\u2029'],
    ['text beyond ASCII', 'ü中😀'],
    ['characters that a form escapes', ' a+b%20&=;'],
    ['100 kB', 'x'.repeat(100_000)],
  ])('give the same answers for a value and a key of %s', async (_, text) => {
    const key = `/v2/keys/letters/${encodeURIComponent(text.slice(0, 50))}`;
    await expectSame(put(key, `${new URLSearchParams({ value: text })}`), get(key), { method: 'DELETE', target: key });
  });

  test.each([
    ['plain text', put('/v2/keys/typed', 'value=1'), 'text/plain'],
    ['JSON', put('/v2/keys/typed', '{"value":"1"}'), 'application/json'],
    ['a form with a charset', put('/v2/keys/typed', 'value=1'), 'Application/X-WWW-Form-Urlencoded; charset=utf-8'],
    ['a form with two values', put('/v2/keys/typed?value=0', 'value=1&value=2'), undefined],
    ['a form that begins with a question mark', put('/v2/keys/typed', '?value=x'), undefined],
    ['an empty form', put('/v2/keys/typed?value=0', ''), undefined],
    ['a form with a bare name', put('/v2/keys/typed', 'value'), undefined],
    ['a form with a bad escape', put('/v2/keys/typed', 'value=%zz&ttl=x'), undefined],
    ['a form with a semicolon', put('/v2/keys/typed', 'value=a;b'), undefined],
    ['a query with a bad escape', get('/v2/keys/typed?x=%1'), undefined],
    ['a query with a semicolon', get('/v2/keys/typed?a=1;b=2'), undefined],
    ['a removal with a form', { method: 'DELETE', target: '/v2/keys/typed', form: 'prevValue=zz' }, undefined],
  ])('give the same answers for %s', async (_, wanted, type) => {
    await expectSame(put('/v2/keys/typed', 'value=before'), type === undefined ? wanted : { ...wanted, type });
    await expectSame(get('/v2/keys/typed'));
  });

  test.each([
    '/',
    '/v2',
    '/v2/',
    '/v2/keysx',
    '/v2/nothing',
    '/v2/machines/',
    '/v2/stats',
    '/v2/stats/self/',
    '/nowhere',
    '/v2/keys/?sorted=true',
    '/v2/keys//',
    '/v2//keys/a',
    '/v2/keys/a/../b',
    '/v2/keys/./a',
    '/v2/keys/a//',
    '/v2/keys/../../x',
    '/v2/keys/%2e%2e/b',
    '/v2/keys/a%2F%2Fb?x=1&y=%3C',
    "/v2/keys//x!*'()$&+,:;=@~?q",
    '/v2/keys//é%3F%23[]',
    '/v2/keys/%zz',
    '/v2/keys/%4',
    '/version/',
    '/health/',
  ])('give the same answer to GET %s', async (target) => {
    await expectSame(get(encodeURI(target).replaceAll('%25', '%')));
  });

  test.each(['HEAD', 'POST', 'PUT', 'DELETE', 'PATCH'])(
    'give the same answers to %s requests for pages',
    async (method) => {
      const paths = [
        '/version',
        '/health',
        '/v2/machines',
        '/v2/stats/self',
        '/v2/stats/leader',
        '/nowhere',
        '/v2//keys',
      ];
      for (const target of paths) {
        const [real, embedded] = await Promise.all([
          both.real.ask({ method, target }),
          both.embedded.ask({ method, target }),
        ]);
        const seen = ({ status, headers }: Exchange) => [
          target,
          status,
          headers.allow,
          headers['content-type'],
          headers.location,
        ];
        expect(seen(embedded)).toEqual(seen(real));
        await Promise.all([real.whole(), embedded.whole()]);
      }
    },
  );
});

test.each([
  '/version',
  '/health',
  '/v2/members',
  '/v2/members/',
  '/v2/members/leader',
  '/v2/stats/self',
  '/v2/stats/leader',
  '/v2/stats/store',
])('%s has the same fields on both servers', async (target) => {
  const [real, embedded] = await Promise.all([both.real.ask(get(target)), both.embedded.ask(get(target))]);
  expect(embedded.headers['content-type']).toBe(real.headers['content-type']);
  expect(embedded.headers['x-etcd-cluster-id'] === undefined).toBe(real.headers['x-etcd-cluster-id'] === undefined);
  expect(shapeOf(JSON.parse(await embedded.whole()))).toEqual(shapeOf(JSON.parse(await real.whole())));
});

test.each([
  ['answer', 4096],
  ['reset', 4097],
  ['reset', 20_000],
])('both servers %s a new connection whose first line has %i bytes', async (outcome, bytes) => {
  const target = '/v2/keys/'.padEnd(bytes - 'GET  HTTP/1.1\r\n'.length, 'x');
  for (const { url } of [both.real, both.embedded]) {
    const fresh = new Asked(url);
    const seen = await answerOf(fresh, get(target)).then(
      () => 'answer',
      ({ code }) => code,
    );
    expect(seen).toBe(outcome === 'answer' ? 'answer' : 'ECONNRESET');
    fresh.close();
  }
});

test('a later request on a connection may have a longer first line', async () => {
  await expectSame(get('/v2/keys/short'), get('/v2/keys/'.padEnd(20_000, 'x')));
});

test('with a TTL beyond the year 2262, a new key never expires and an existing key expires at once', async () => {
  const key = '/v2/keys/far';
  await expectSame(put(key, 'value=1&ttl=10000000000'), put(key, 'value=2&ttl=9223372036'), get(key));
  const updated = put(key, 'value=3&ttl=10000000000&prevExist=true');
  for (const server of [both.real, both.embedded]) {
    expect(JSON.parse((await answerOf(server, updated)).body).node.ttl).toBe(-8_446_744_073);
    await until(
      () => answerOf(server, get(key)),
      ({ status }) => status === 404,
    );
  }
});

/** Without the TTL of keys that have expired more than a second too late: on a busy machine, that depends on chance. */
const onTime = (events: string): string => events.replaceAll(/,"ttl":-\d+/g, '');

test('keys expire with the same events, in the same order', async () => {
  const dir = '/v2/keys/short';
  const watch = get(`${dir}?wait=true&recursive=true&stream=true&waitIndex=${index + 6}`);
  const seen = await Promise.all(
    [both.real, both.embedded].map(async (server) => {
      await answerOf(server, put(`${dir}/stays`, 'value=1'));
      const stream = await server.ask(watch);
      await answerOf(server, put(`${dir}/3`, 'dir=true&ttl=7'));
      await answerOf(server, put(`${dir}/3/child`, 'value=1&ttl=100'));
      await answerOf(server, put(`${dir}/2`, 'value=1&ttl=2'));
      await answerOf(server, put(`${dir}/0`, 'value=1&ttl=0'));
      await until(stream.body, (body) => body.split('\n').length > 3);
      stream.abort();
      return onTime(masked(stream.body()));
    }),
  );
  expect(seen[1]).toBe(seen[0]);
  expect(seen[0]?.match(/"action":"expire","node":\{"key":"[^"]+"/g)?.map((text) => text.slice(-3))).toEqual([
    '/0"',
    '/2"',
    '/3"',
  ]);
});

test('streams get the same events of keys that expire in one tick', async () => {
  const targets = [
    '?recursive=true&',
    '/ab?',
    '/a?',
    '/a?recursive=true&',
    '/a/x?',
    '/_h?',
    '/_h/x?',
    '/c?recursive=true&',
  ];
  const opened = await Promise.all(
    [both.real, both.embedded].map(async (server) => {
      const streams = await Promise.all(
        targets.map((target) => server.ask(get(`/v2/keys/tick${target}wait=true&stream=true`))),
      );
      for (const dir of ['a', '_h', 'c']) await answerOf(server, put(`/v2/keys/tick/${dir}`, 'dir=true&ttl=5'));
      for (const key of ['a/x', '_h/x']) await answerOf(server, put(`/v2/keys/tick/${key}`, 'value=1'));
      for (const key of ['ab', 'd']) await answerOf(server, put(`/v2/keys/tick/${key}`, 'value=1&ttl=5'));
      await until(
        () => answerOf(server, get('/v2/keys/tick/d')),
        ({ status }) => status === 404,
      );
      for (const key of ['ab', 'a/x', '_h/x']) await answerOf(server, put(`/v2/keys/tick/${key}`, 'value=2'));
      await answerOf(server, { method: 'DELETE', target: '/v2/keys/tick?recursive=true' });
      await until(
        () => streams.map((stream) => stream.body()),
        (bodies) => bodies.every((body) => /"action":"(?:delete|expire)","node":\{"key":"\/tick(?:\/c)?"/.test(body)),
      );
      return streams;
    }),
  );
  const seen = () => opened.map((streams) => streams.map((stream) => onTime(masked(stream.body()))));
  const same = ([real, embedded]: string[][]) => JSON.stringify(real) === JSON.stringify(embedded);
  await until(seen, same, { timeout: 3000 }).catch(() => expect(seen()[1]).toEqual(seen()[0]));
  expect(seen()[0]?.[0]?.match(/"action":"expire"/g)).toHaveLength(4);
  for (const stream of opened.flat()) stream.abort();
});

test('a watch from history reports the removal of a directory whose name is a prefix of the key', async () => {
  const removal = { method: 'DELETE', target: '/v2/keys/begin?recursive=true' };
  await expectSame(put('/v2/keys/begin/a', 'value=1'), removal);
  const wait = get(`/v2/keys/beginning?wait=true&waitIndex=${index + 2}`);
  expect((await expectSame(wait))[0]).toContain('"action":"delete","node":{"key":"/begin"');
});

test('the history has the last thousand events of the whole store', async () => {
  await expectSame(put('/v2/keys/old', 'value=1'));
  for (let i = 0; i < 999; i += 1)
    await Promise.all(
      [both.real, both.embedded].map(async (server) => (await server.ask(put('/v2/keys/filler', ''))).whole()),
    );
  const wait = get(`/v2/keys/old?wait=true&waitIndex=${index + 1}`);
  expect((await expectSame(wait))[0]).toContain('"key":"/old"');
  await expectSame(put('/v2/keys/filler', ''));
  expect((await expectSame(wait))[0]).toContain(`[${index + 2}/${index + 1}]`);
});

/** The names of the fields in a JSON value, each with its type. */
function shapeOf(value: unknown): unknown {
  if (Array.isArray(value)) return value.length === 0 ? [] : [shapeOf(value[0])];
  if (typeof value !== 'object' || value === null) return typeof value;
  return Object.fromEntries(
    Object.entries(value).map(([name, inner]) => [
      name,
      Array.isArray(inner) && name === 'peerURLs' ? 'list' : shapeOf(inner),
    ]),
  );
}
