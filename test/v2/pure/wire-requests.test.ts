import fc from 'fast-check';
import { expect, test } from 'vitest';
import type { CreateOptions, DeleteOptions, GetOptions, SetOptions, WatchOptions } from '../../../src/v2/keys-api.ts';
import * as wire from '../../../src/v2/wire.ts';

const KEY = '/_locks/x';
const PATH = '/keys/_locks/x';

/** Returns the parts of a request. */
const written = ({ method, path, query, form }: wire.WireRequest) => [method, path, query, form];

test.each<[string, GetOptions | undefined, string]>([
  ['a key', undefined, ''],
  ['a whole directory', { recursive: true }, 'recursive=true'],
  ['a sorted directory', { recursive: true, sorted: true }, 'recursive=true&sorted=true'],
  ['a key by quorum', { quorum: true }, 'quorum=true'],
  ['a key with every option switched off', { recursive: false, sorted: false, quorum: false }, ''],
])('a read of %s is a GET', (_, options, query) => {
  expect(written(wire.encodeGet(KEY, options))).toEqual(['GET', PATH, query, undefined]);
});

test.each<[string, WatchOptions, string]>([
  ['from the index after the last one seen', { after: 6 }, 'wait=true&waitIndex=7'],
  ['from the first index', { after: 0 }, 'wait=true&waitIndex=1'],
  ['of a whole directory', { after: 6, recursive: true }, 'wait=true&waitIndex=7&recursive=true'],
])('a watch %s is a GET', (_, options, query) => {
  expect(written(wire.encodeWatch(KEY, options))).toEqual(['GET', PATH, query, undefined]);
});

test.each<[string, string | undefined, SetOptions | undefined, string]>([
  ['a value alone', 'u1', undefined, 'value=u1'],
  ['an empty value', '', undefined, 'value='],
  ['a TTL', 'u1', { ttl: 60 }, 'value=u1&ttl=60'],
  ['a TTL of 0', 'u1', { ttl: 0 }, 'value=u1&ttl=0'],
  ['a removed expiry', 'u1', { ttl: null }, 'value=u1&ttl='],
  ['an expected value', 'u1', { ttl: 60, prevValue: 'u1' }, 'value=u1&ttl=60&prevValue=u1'],
  ['an expected index', 'u1', { prevIndex: 4 }, 'value=u1&prevIndex=4'],
  ['a key that must exist', 'u1', { prevExist: true }, 'value=u1&prevExist=true'],
  ['a key that must not exist', 'u1', { prevExist: false }, 'value=u1&prevExist=false'],
  ['a refresh', undefined, { ttl: 60, refresh: true, prevValue: 'u1' }, 'ttl=60&prevValue=u1&refresh=true'],
  ['a directory', undefined, { dir: true, ttl: 9 }, 'ttl=9&dir=true'],
  ['non-ASCII text', 'ü 中+&=', undefined, 'value=%C3%BC+%E4%B8%AD%2B%26%3D'],
])('a set with %s is a PUT with a form', (_, value, options, form) => {
  expect(written(wire.encodeSet(KEY, value, options))).toEqual(['PUT', PATH, '', form]);
});

test.each<[string, CreateOptions | undefined, string]>([
  ['without a TTL', undefined, 'value=u1'],
  ['that never expires', { ttl: null }, 'value=u1'],
  ['with a TTL', { ttl: 60 }, 'value=u1&ttl=60'],
])('an append %s is a POST with a form', (_, options, form) => {
  expect(written(wire.encodeCreateInOrder(KEY, 'u1', options))).toEqual(['POST', PATH, '', form]);
});

test.each<[string, DeleteOptions | undefined, string]>([
  ['without conditions', undefined, ''],
  ['of one value', { prevValue: 'a b' }, 'prevValue=a+b'],
  ['of one value at one index', { prevValue: 'u1', prevIndex: 4 }, 'prevValue=u1&prevIndex=4'],
  ['of an empty directory', { dir: true }, 'dir=true'],
  ['of a whole tree', { recursive: true }, 'recursive=true'],
])('a removal %s is a DELETE', (_, options, query) => {
  expect(written(wire.encodeDelete(KEY, options))).toEqual(['DELETE', PATH, query, undefined]);
});

test.each(['/version', '/machines', '/members'] as const)('a request for %s is a GET', (path) => {
  expect(written(wire.encodeInfo(path))).toEqual(['GET', path, '', undefined]);
});

test.each([
  ['with space', 'with%20space'],
  ['umläut', 'uml%C3%A4ut'],
  ['中文', '%E4%B8%AD%E6%96%87'],
  ['🔒', '%F0%9F%94%92'],
  ['a/b/c', 'a/b/c'],
  ['dots.and-dashes_~', 'dots.and-dashes_~'],
  ['plus+sign', 'plus%2Bsign'],
  ["quote'", "quote'"],
  ['semi;colon', 'semi%3Bcolon'],
  ['at@colon:eq=amp&', 'at%40colon%3Aeq%3Damp%26'],
  ['back\\slash', 'back%5Cslash'],
  ['[x]{y}|^`<>"', '%5Bx%5D%7By%7D%7C%5E%60%3C%3E%22'],
  ['what?', 'what%3F'],
  ['sharp#', 'sharp%23'],
  ['%41', '%2541'],
  ['...', '...'],
])('the key %j is percent-encoded', (name, encoded) => {
  const key = `/_locks/${name}`;
  const path = `/keys/_locks/${encoded}`;
  const requests = [
    wire.encodeGet(key),
    wire.encodeWatch(key, { after: 1 }),
    wire.encodeSet(key, 'u1'),
    wire.encodeCreateInOrder(key, 'u1'),
    wire.encodeDelete(key),
  ];
  expect(requests.map((request) => request.path)).toEqual(requests.map(() => path));
});

test('the root can be listed', () => {
  expect(wire.encodeGet('/').path).toBe('/keys/');
});

test('the path of any key is plain ASCII without ? and #, and decodes to the key', () => {
  const segment = fc.string({ unit: 'grapheme', minLength: 1 }).filter((s) => !/^\.\.?$|\/|\p{Surrogate}/u.test(s));
  fc.assert(
    fc.property(fc.array(segment, { minLength: 1, maxLength: 4 }), (segments) => {
      const { path } = wire.encodeGet(`/${segments.join('/')}`);
      expect(path).toMatch(/^\/keys\/[\w.~!'()*%/-]+$/);
      expect(new URL(path, 'http://x').pathname).toBe(path);
      expect(path.split('/').slice(2).map(decodeURIComponent)).toEqual(segments);
    }),
  );
});

test.each<[string, () => unknown]>([
  ['key must begin with "/", got "x"', () => wire.encodeGet('x')],
  ['key must have no empty, "." or ".." segment, got "/a//b"', () => wire.encodeGet('/a//b')],
  ['key must have no empty, "." or ".." segment, got "/a/"', () => wire.encodeDelete('/a/')],
  ['key must have no empty, "." or ".." segment, got "/a/../b"', () => wire.encodeSet('/a/../b', 'u1')],
  ['key must have no empty, "." or ".." segment, got "/."', () => wire.encodeCreateInOrder('/.', 'u1')],
  ['key must be well-formed Unicode, got "/\\ud800"', () => wire.encodeWatch('/\ud800', { after: 1 })],
  ['after must be an integer ≥ 0, got -1', () => wire.encodeWatch(KEY, { after: -1 })],
  ['after must be an integer ≥ 0, got NaN', () => wire.encodeWatch(KEY, { after: Number.NaN })],
  ['after must be an integer ≥ 0, got 9007199254740992', () => wire.encodeWatch(KEY, { after: 2 ** 53 })],
  ['ttl must be an integer ≥ 0, got -1', () => wire.encodeSet(KEY, 'u1', { ttl: -1 })],
  ['ttl must be an integer ≥ 0, got 1.5', () => wire.encodeSet(KEY, 'u1', { ttl: 1.5 })],
  ['ttl must be an integer ≥ 0, got NaN', () => wire.encodeCreateInOrder(KEY, 'u1', { ttl: Number.NaN })],
  ['ttl must be an integer ≥ 0, got Infinity', () => wire.encodeCreateInOrder(KEY, 'u1', { ttl: 1 / 0 })],
  ['ttl must be an integer ≥ 0, got "5"', () => wire.encodeSet(KEY, 'u1', JSON.parse('{"ttl":"5"}'))],
  ['prevValue must not be empty', () => wire.encodeSet(KEY, 'u1', { prevValue: '' })],
  ['prevValue must not be empty', () => wire.encodeDelete(KEY, { prevValue: '' })],
  ['prevIndex must be an integer ≥ 1, got 1.5', () => wire.encodeDelete(KEY, { prevIndex: 1.5 })],
  ['prevIndex must be an integer ≥ 1, got -4', () => wire.encodeSet(KEY, 'u1', { prevIndex: -4 })],
  ['refresh needs a ttl and no value, got ttl 60 and value "u1"', () => refresh('u1', 60)],
  ['refresh needs a ttl and no value, got ttl undefined and value undefined', () => refresh(undefined)],
  ['refresh needs a ttl and no value, got ttl null and value undefined', () => refresh(undefined, null)],
  ['a directory has no value, got "u1"', () => wire.encodeSet(KEY, 'u1', { dir: true })],
])('invalid arguments are refused: %s', (message, encode) => {
  expect(encode).toThrow(RangeError);
  expect(encode).toThrow(message);
});

const refresh = (value: string | undefined, ttl?: number | null) => wire.encodeSet(KEY, value, { refresh: true, ttl });
