import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { EtcdConnectionFailed, EtcdUnusableAnswer } from '../../../src/errors.ts';
import type { WireAnswer } from '../../../src/http/message.ts';
import { decodeHeader, encodeBytes, Fields } from '../../../src/v3/gateway/messages.ts';
import { gatewayPrefix } from '../../../src/v3/gateway/version.ts';
import { decodeRange } from '../../../src/v3/rpc/entry.ts';
import { endOfPrefix, startOfPrefix } from '../../../src/v3/rpc/ranges.ts';
import { decodeWatchMessage, JsonObjects } from '../../../src/v3/rpc/watch-stream.ts';

const answer = (body: unknown, status = 200): WireAnswer => ({
  status,
  headers: {},
  body: typeof body === 'string' ? body : JSON.stringify(body),
  sentAt: 0,
});
const fieldsOf = (body: unknown): Fields => new Fields(answer(body), body);

describe('the fields of an answer', () => {
  test('keep whole numbers exact beyond 2^53, as texts and as numbers', () => {
    const fields = fieldsOf({ a: '9223372036854775807', b: '-1', c: 7, d: '18446744073709551615' });
    expect(fields.integer('a')).toBe(9_223_372_036_854_775_807n);
    expect(fields.integer('b')).toBe(-1n);
    expect(fields.integer('c')).toBe(7n);
    expect(fields.unsigned('d')).toBe(18_446_744_073_709_551_615n);
  });

  test.each([
    ['integer', '9223372036854775807', '9223372036854775808'],
    ['integer', '-9223372036854775808', '-9223372036854775809'],
    ['positive', '9223372036854775807', '9223372036854775808'],
    ['unsigned', '18446744073709551615', '18446744073709551616'],
    ['unsigned', '0', '-1'],
  ] as const)('are of type %s up to %s: %s is refused', (type, inside, outside) => {
    expect(fieldsOf({ a: inside })[type]('a')).toBe(BigInt(inside));
    expect(() => fieldsOf({ a: outside })[type]('a')).toThrow(EtcdUnusableAnswer);
    expect(() => fieldsOf({ a: outside })[type]('a')).toThrow('no valid field a (an integer from');
  });

  test('are zero, empty or false if the gateway leaves them out', () => {
    const fields = fieldsOf({});
    expect([fields.integer('a'), fields.text('a'), fields.flag('a'), fields.list('a'), fields.optional('a')]).toEqual([
      0n,
      '',
      false,
      [],
      undefined,
    ]);
  });

  test.each([
    ['an integer', { a: 2 ** 60 }, (fields: Fields) => fields.integer('a')],
    ['an integer', { a: '0x10' }, (fields: Fields) => fields.integer('a')],
    ['an integer', { a: true }, (fields: Fields) => fields.integer('a')],
    ['an integer', { a: null }, (fields: Fields) => fields.integer('a')],
    ['an integer greater than 0', {}, (fields: Fields) => fields.positive('a')],
    ['an integer greater than 0', { a: '-1' }, (fields: Fields) => fields.positive('a')],
    ['a string', { a: 1 }, (fields: Fields) => fields.text('a')],
    ['a boolean', { a: 'true' }, (fields: Fields) => fields.flag('a')],
    ['base64', { a: 'a$==' }, (fields: Fields) => fields.raw('a')],
    ['a list', { a: {} }, (fields: Fields) => fields.list('a')],
    ['a list', { a: null }, (fields: Fields) => fields.list('a')],
    ['a list of strings', { a: ['a', 1] }, (fields: Fields) => fields.texts('a')],
    ['a message', {}, (fields: Fields) => fields.message('a')],
  ])('are refused unless they are %s: %j', (expected, body, read) => {
    expect(() => read(fieldsOf(body))).toThrow(EtcdUnusableAnswer);
    expect(() => read(fieldsOf(body))).toThrow(`no valid field a (${expected})`);
  });

  test.each([null, [], 'text', 1])('are refused if the answer is %j', (body) => {
    expect(() => fieldsOf(body)).toThrow(EtcdUnusableAnswer);
  });
});

test('the cluster id of a header is in hex, as on etcd v2', () => {
  const header = { cluster_id: '14841639068965178418', revision: '20', raft_term: '2' };
  expect(decodeHeader(fieldsOf({ header }))).toEqual({
    clusterId: 'cdf818194e3a8c32',
    revision: 20n,
    raftTerm: '2',
  });
});

test.each(['revision', 'create_revision', 'mod_revision', 'lease'])(
  'a %s of 2^63 is refused: etcd has none',
  (name) => {
    const [header, kv] = [
      { cluster_id: '1', revision: '20' },
      { key: 'YQ==', create_revision: '3', mod_revision: '4' },
    ];
    const tooMuch = { [name]: String(2n ** 63n) };
    const body = name === 'revision' ? { header: { ...header, ...tooMuch } } : { header, kvs: [{ ...kv, ...tooMuch }] };
    const decode = () => [decodeHeader(fieldsOf(body)), decodeRange(fieldsOf(body))];
    expect(decode).toThrow(`no valid field ${name} (`);
  },
);

test('a key and a value of another client need not be valid UTF-8: their bytes are kept', () => {
  const key = Buffer.from([0x2f, 0xff, 0x00]).toString('base64');
  const value = Buffer.from([0xfe, 0x61]).toString('base64');
  const kvs = [{ key, value, create_revision: '3', mod_revision: '4', lease: '7587883213306423043' }];
  const [found] = decodeRange(fieldsOf({ kvs }));
  expect(found).toMatchObject({ rank: 3n, modified: 4n, lease: '7587883213306423043' });
  expect([encodeBytes(found?.key ?? ''), encodeBytes(found?.value ?? '')]).toEqual([key, value]);
});

test('the end of a prefix is greater than all keys that begin with it, and not greater than others', () => {
  const bytes = (base64: string) => Buffer.from(base64, 'base64');
  const text = fc.string({ unit: 'grapheme', minLength: 1 });
  const anyPrefix = fc.string({ unit: 'grapheme' });
  fc.assert(
    fc.property(anyPrefix, text, text, (prefix, rest, other) => {
      const [start, end] = [bytes(startOfPrefix(prefix)), bytes(endOfPrefix(prefix))];
      const inRange = (key: string) => {
        const at = bytes(encodeBytes(key));
        // etcd takes a range whose two ends are a zero byte for all keys.
        return prefix === '' || (Buffer.compare(start, at) <= 0 && Buffer.compare(at, end) < 0);
      };
      expect(inRange(prefix + rest)).toBe(true);
      const begins = Buffer.from(other).subarray(0, Buffer.byteLength(prefix)).equals(Buffer.from(prefix));
      expect(inRange(other)).toBe(begins);
      if (prefix === '') expect([...start, ...end]).toEqual([0, 0]);
    }),
  );
});

describe('the stream of a watch', () => {
  test('is split into its objects, wherever its pieces end', () => {
    const objects = fc.array(fc.object({ key: fc.string(), values: [fc.string(), fc.constant('{}"\\')] }), {
      minLength: 1,
    });
    const cuts = fc.array(fc.nat({ max: 40 }), { minLength: 1 });
    fc.assert(
      fc.property(objects, cuts, fc.constantFrom('\n', '', ' \r\n'), (sent, sizes, between) => {
        const stream = Buffer.from(sent.map((one) => JSON.stringify(one) + between).join(''));
        const got: unknown[] = [];
        const split = new JsonObjects((text) => got.push(JSON.parse(text)));
        for (let at = 0, i = 0; at < stream.length; i += 1) {
          const size = 1 + (sizes[i % sizes.length] ?? 0);
          split.add(stream.subarray(at, at + size));
          at += size;
        }
        expect(got).toEqual(sent.map((one) => JSON.parse(JSON.stringify(one))));
      }),
    );
  });

  test('is given up if one of its messages is too long', () => {
    const split = new JsonObjects(() => {});
    expect(() => split.add(Buffer.from(`{"a":"${'x'.repeat(5 * 1024 * 1024)}`))).toThrow(EtcdUnusableAnswer);
  });

  const WRITTEN = { key: 'YQ==', create_revision: '2', mod_revision: '2' };

  test.each([
    [{ isCreated: true }, { result: { created: true } }],
    [{}, { result: {} }],
    [{ events: [{ isDeleted: false, key: 'a' }] }, { result: { events: [{ kv: WRITTEN }] } }],
    [
      {
        events: [
          { isDeleted: false, key: 'a' },
          { isDeleted: true, key: 'a' },
        ],
      },
      { result: { events: [{ kv: WRITTEN }, { type: 'DELETE', kv: { key: 'YQ==', mod_revision: '3' } }] } },
    ],
    [{ isCompacted: true }, { result: { canceled: true, compact_revision: '131' } }],
  ])('says %j: %j', (said, message) => {
    const nothing = { isCreated: false, isCompacted: false, events: [] };
    const { events, ...rest } = decodeWatchMessage(JSON.stringify(message));
    const changes = events.map(({ key, written }) => ({ isDeleted: !written, key }));
    expect({ ...rest, events: changes }).toEqual({ ...nothing, ...said });
  });

  test.each([
    ['no leader', { error: { grpc_code: 14, http_code: 503, message: 'etcdserver: no leader' } }],
    ['no leader', { error: { code: 14, message: 'etcdserver: no leader' } }],
    [
      'permission denied',
      { result: { watch_id: '-1', created: true, canceled: true, cancel_reason: 'permission denied' } },
    ],
  ])('fails with %s: %j', (why, message) => {
    expect(() => decodeWatchMessage(JSON.stringify(message))).toThrow(EtcdConnectionFailed);
    expect(() => decodeWatchMessage(JSON.stringify(message))).toThrow(why);
  });

  test.each(['<html>', '[]', '{"result":7}', '{}'])('is refused if a message is %s', (text) => {
    expect(() => decodeWatchMessage(text)).toThrow(EtcdUnusableAnswer);
  });
});

describe('the version of a member', () => {
  test.each([
    ['3.3.27', '/v3beta'],
    ['3.4.23', '/v3'],
    ['3.5.9', '/v3'],
    ['3.6.0-rc.2', '/v3'],
    ['4.0.0', '/v3'],
  ])('%s means the prefix %s', (etcdserver, prefix) => {
    expect(gatewayPrefix(answer({ etcdserver, etcdcluster: '3.3.0' }))).toBe(prefix);
  });

  test.each(['2.3.8', '3.0.17', '3.1.20', '3.2.32'])('%s is refused by name', (etcdserver) => {
    expect(() => gatewayPrefix(answer({ etcdserver }))).toThrow(`etcd "${etcdserver}" is too old`);
  });

  test.each(['<html>', '{}', '{"etcdserver":"new"}', '[]'])('%s is refused', (body) => {
    expect(() => gatewayPrefix(answer(body))).toThrow(EtcdUnusableAnswer);
  });
});
