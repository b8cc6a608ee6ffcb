// Requests that no well-behaved client sends. etcd and the embedded server give the same answers.
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { until } from '../support/until.ts';
import { answerOf, get, put, sameAnswers } from './differential/answers.ts';
import { type Both, level, openBoth } from './differential/both.ts';
import type { Asked, Wanted } from './differential/exchange.ts';

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

describe('bytes that are not UTF-8', () => {
  test('distinguish keys, and are sorted as bytes', async () => {
    const names = ['%fe', '%ff', '%EF%BF%BD', '%ed%a0%80', '%e4%b8', '%e4%b9', '%F0%9F%98%80', 'a%ffb'];
    const keys = names.map((name) => `/v2/keys/bytes/${name}`);
    await expectSame(...keys.map((key, i) => put(key, `value=${i}`)), ...keys.map(get));
    const [listing = ''] = await expectSame(get('/v2/keys/bytes?sorted=true'));
    expect(listing.match(/"value"/g)).toHaveLength(names.length);
    await expectSame(...keys.slice(0, 2).map((target) => ({ method: 'DELETE', target })), get(keys[2] ?? ''));
  });

  test.each(['%ff', 'a%C3%28%FF', '%ed%a0%80', '%f0%9f', '%f0%9f%98%80%c0%80%ef%bf%bd', '%c3', '%fe%80é'])(
    'in the value %s are answered as \\ufffd each',
    async (value) => {
      await expectSame(put('/v2/keys/byte', `value=${value}`), get('/v2/keys/byte'));
    },
  );

  test('are compared as bytes', async () => {
    const key = '/v2/keys/compared';
    await expectSame(
      put(key, 'value=%ff'),
      put(key, 'value=no&prevValue=%fe'),
      put(key, 'value=no&prevValue=%EF%BF%BD'),
      put(key, 'value=%fe&prevValue=%ff'),
      { method: 'DELETE', target: `${key}?prevValue=%ff` },
      { method: 'DELETE', target: `${key}?prevValue=%fe` },
    );
  });

  test('are reported only to watches of their key', async () => {
    await expectSame(put('/v2/keys/waited/%fe', 'value=1'), put('/v2/keys/waited/%ff', 'value=2'));
    const [event] = await expectSame(get(`/v2/keys/waited/%ff?wait=true&waitIndex=${index + 1}`));
    expect(event).toContain('"value":"2"');
  });

  test.each(['/v2/keys//%ff/x', '/v2/keys/%fe/..//%C3%A9%c3'])('are escaped in the redirect from %s', async (to) => {
    await expectSame(get(to));
  });

  test.each(['%f%ff', '%\x01', '%"a', '%', '%=&', '%zz', '%a+', '%\x7f\\', '%é', '%a\u00a0', '%\n\r', '%\xad'])(
    'in the bad escape %j are quoted in the same way',
    async (bad) => {
      await expectSame(put('/v2/keys/escaped', `value=${bad}`), put('/v2/keys/escaped', `${bad}=x`));
    },
  );
});

describe('numbers beyond 2^53', () => {
  const far = 2n ** 53n;
  const wrapped = 2n ** 63n;

  test.each([
    far - 1n,
    far,
    far + 1000n,
    far * 2n,
    7_500_000_000n,
    wrapped + 100n,
    wrapped + 5000n,
    2n ** 64n,
    36_893_488_247n,
  ])('a TTL of %i is counted in nanoseconds modulo 2^64', async (ttl) => {
    const shown = async (server: Asked, wanted: Wanted) => {
      const { status, body } = await answerOf(server, wanted);
      const { node, cause } = JSON.parse(body);
      // The two servers do not get the request at exactly the same time.
      return { status, cause, key: node?.key, ttl: node?.ttl && Math.round(node.ttl / 10) };
    };
    const key = '/v2/keys/wrapped';
    for (const form of [`value=1&ttl=${ttl}`, `value=2&ttl=${ttl}&prevExist=true`]) {
      await Promise.all([both.real, both.embedded].map((server) => answerOf(server, put(key, 'value=0'))));
      const [real, embedded] = await Promise.all([
        shown(both.real, put(key, form)),
        shown(both.embedded, put(key, form)),
      ]);
      expect(embedded, form).toEqual(real);
    }
    const removal = { method: 'DELETE', target: key };
    await Promise.all([both.real, both.embedded].map((server) => answerOf(server, removal)));
  });

  test.each([wrapped - 1n, wrapped, 2n ** 64n - 1n, 2n ** 64n - 100n, 2n ** 55n - 5n])(
    'a TTL of %i expires at once',
    async (ttl) => {
      for (const server of [both.real, both.embedded]) {
        expect((await answerOf(server, put('/v2/keys/over', `value=1&ttl=${ttl}`))).status).toBe(201);
        await until(
          () => answerOf(server, get('/v2/keys/over')),
          ({ status }) => status === 404,
        );
      }
    },
  );

  test.each([far + 1n, wrapped, 2n ** 64n - 1n, 2n ** 64n])(
    'an index of %i is shown unchanged in the error',
    async (at) => {
      const key = '/v2/keys/indexed';
      await expectSame(put(key, 'value=1'), put(key, `value=2&prevIndex=${at}`), {
        method: 'DELETE',
        target: `${key}?prevIndex=${at}`,
      });
    },
  );
});

describe('a Content-Type', () => {
  const FORM = 'application/x-www-form-urlencoded';

  test.each([
    ...[
      '',
      ';',
      '; charset=utf-8',
      ' ;a = b',
      ';a="b" ; c=d',
      ';a=""',
      ';a="x\\"y"',
      ';a="x\\y"',
      ';a="\\\\"',
      ';a=b;',
    ],
    ...[";a*=utf-8''x", ';a*0=x; a*1=y', ';a="ÿ"', '\t', ';a=b ; '],
  ])('of a form with parameters %j is read', async (rest) => {
    const wanted = { ...put('/v2/keys/typed', 'value=read'), type: `${FORM}${rest}` };
    expect((await expectSame(wanted))[0]).toContain('"value":"read"');
  });

  test.each([
    ...['; charset', '; charset=', ';a=b;a=b', ';a=b;A=c', ';a*0=x;a*0=y', ';;a=b', ';a="b', ';a="b\\"', ';=a', ' a=b'],
    ...[', text/plain', ';a=b c', ';a=@', ';a="b"c', ';a=ÿ', '/x', ';a=b; ;', ' ;', ';a', '@'],
  ])('of a form with odd parameters %j gets the same answer', async (rest) => {
    await expectSame({ ...put('/v2/keys/typed', 'value=x'), type: `${FORM}${rest}` }, get('/v2/keys/typed'));
  });

  test.each([
    'text',
    'text/',
    'text/;a=b',
    '/plain',
    '/',
    ';',
    ' ; ',
    'text / plain',
    'text/plain; x',
    'foo bar',
    '"text"',
    'ÿ',
    'a/ÿ',
    'text@x/y',
  ])('%j gets the same answer', async (type) => {
    await expectSame({ ...put('/v2/keys/typed', 'value=x'), type }, { ...put('/v2/keys/typed', 'ttl=x'), type });
    await expectSame({ method: 'POST', target: '/v2/keys/typed/q', form: 'value=x', type });
    await expectSame({ method: 'DELETE', target: '/v2/keys/typed', form: 'value=x', type });
  });

  test('that is invalid is reported before an invalid query', async () => {
    const bad = { ...put('/v2/keys/typed?a=%zz', 'b=%yy'), type: `${FORM};a` };
    expect((await expectSame(bad))[0]).toContain('mime: invalid media parameter');
  });
});
