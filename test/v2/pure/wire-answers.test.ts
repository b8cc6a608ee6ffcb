import { expect, test } from 'vitest';
import { EtcdUnusableAnswer } from '../../../src/errors.ts';
import * as wire from '../../../src/v2/wire.ts';
import { ANSWER_HEADERS, CLUSTER, failed, file, got, versionBody, wireAnswer } from '../../support/v2-answers.ts';

const KEY = '/_locks/x/00000000000000000004';
const EXPIRATION = '2026-01-01T00:00:00.000000001Z';
const about = { clusterId: CLUSTER, sentAt: 12.5 };
const plain = { key: KEY, value: 'u1', dir: false, createdIndex: 4, modifiedIndex: 4, nodes: [] };

test('an appended entry has its key, its TTL and the time when the request was sent', () => {
  const node = file(KEY, { expiration: EXPIRATION, ttl: 60 });
  expect(wire.decodeChange(wireAnswer(201, { action: 'create', node }), KEY)).toEqual({
    ...about,
    action: 'create',
    node: { ...plain, expiration: EXPIRATION, ttl: 60 },
  });
});

test('an entry that is about to expire has an expiration and no TTL', () => {
  const { node } = wire.decodeChange(
    wireAnswer(201, { action: 'create', node: file(KEY, { expiration: EXPIRATION }) }),
    KEY,
  );
  expect(node).toEqual({ ...plain, expiration: EXPIRATION });
});

test('a listing keeps the server’s order and has the index of the snapshot', () => {
  const nodes = [file('/_locks/x/9'), file('/_locks/x/1', { value: 'umläut 中文 🔒' }), dir('/_locks/x/sub')];
  const snapshot = wire.decodeSnapshot(
    wireAnswer(200, { action: 'get', node: { ...dir('/_locks/x'), nodes } }),
    '/_locks/x',
  );
  expect(snapshot.index).toBe(7);
  expect(snapshot.node.dir).toBe(true);
  expect(snapshot.node.value).toBeUndefined();
  expect(snapshot.node.nodes.map((node) => [node.key, node.value, node.dir])).toEqual([
    ['/_locks/x/9', 'u1', false],
    ['/_locks/x/1', 'umläut 中文 🔒', false],
    ['/_locks/x/sub', undefined, true],
  ]);
});

test('a directory that comes without `nodes` is empty', () => {
  const answer = wireAnswer(200, { action: 'get', node: dir('/_locks/x') });
  expect(wire.decodeSnapshot(answer, '/_locks/x').node).toEqual({
    key: '/_locks/x',
    dir: true,
    createdIndex: 4,
    modifiedIndex: 4,
    nodes: [],
  });
});

test('the root, which comes without a key and an index, is the directory "/"', () => {
  const answer = wireAnswer(200, { action: 'get', node: { dir: true, nodes: [dir('/a')] } });
  const { node } = wire.decodeSnapshot(answer, '/');
  expect(node).toMatchObject({ key: '/', dir: true, createdIndex: 0, modifiedIndex: 0 });
  expect(node.nodes.map(({ key }) => key)).toEqual(['/a']);
});

test('the answer to a removal has the previous node', () => {
  const body = {
    action: 'compareAndDelete',
    node: { key: KEY, createdIndex: 4, modifiedIndex: 9 },
    prevNode: file(KEY),
  };
  const change = wire.decodeChange(wireAnswer(200, body), KEY);
  expect(change.action).toBe('compareAndDelete');
  expect(change.node).toEqual({ key: KEY, dir: false, createdIndex: 4, modifiedIndex: 9, nodes: [] });
  expect(change.prevNode).toEqual(plain);
});

test('the answer to a renewal has the created index of the append', () => {
  const node = file(KEY, { modifiedIndex: 11, ttl: 60 });
  const change = wire.decodeChange(wireAnswer(200, { action: 'compareAndSwap', node, prevNode: file(KEY) }), KEY);
  expect(change.node).toMatchObject({ createdIndex: 4, modifiedIndex: 11, value: 'u1' });
});

test('an event’s index is that of the change, not that of the start of the poll', () => {
  const body = { action: 'expire', node: { key: KEY, createdIndex: 4, modifiedIndex: 31 }, prevNode: file(KEY) };
  expect(wire.decodeEvent(wireAnswer(200, body), KEY)).toMatchObject({ action: 'expire', index: 31, prevNode: plain });
});

test.each(['', '\n', ' \r\n'])('a wait that ends with the body %j has no event', (body) => {
  expect(wire.decodeEvent(wireAnswer(200, body), KEY)).toBeUndefined();
});

test('an event with another status or a broken body is an error', () => {
  expect(() => wire.decodeEvent(wireAnswer(400, failed(401)), KEY)).toThrow('refused (/x)');
  expect(() => wire.decodeEvent(wireAnswer(503, ''), KEY)).toThrow('answered 503: (empty)');
  expect(() => wire.decodeEvent(wireAnswer(200, '{"action":"se'), KEY)).toThrow(EtcdUnusableAnswer);
});

test.each([
  ['missing', {}],
  ['not a number', { 'x-etcd-index': 'seven' }],
  ['empty', { 'x-etcd-index': '' }],
  ['negative', { 'x-etcd-index': '-1' }],
  ['beyond 2^53', { 'x-etcd-index': '9007199254740993' }],
  ['beyond 2^64', { 'x-etcd-index': '99999999999999999999999999' }],
])('a snapshot whose X-Etcd-Index is %s is unusable', (_, headers) => {
  const decode = () => wire.decodeSnapshot(wireAnswer(200, got(KEY), headers), KEY);
  expect(decode).toThrow(EtcdUnusableAnswer);
  expect(decode).toThrow(/X-Etcd-Index/);
});

test('the greatest exact index is accepted, even if the header comes twice', () => {
  const headers = { 'x-etcd-index': ['9007199254740991', '1'] };
  expect(wire.decodeSnapshot(wireAnswer(200, got(KEY), headers), KEY).index).toBe(Number.MAX_SAFE_INTEGER);
});

test('the answer to a write may come without X-Etcd-Index and without a cluster id', () => {
  expect(wire.decodeChange(wireAnswer(200, { action: 'set', node: file(KEY) }, {}), KEY)).toEqual({
    clusterId: undefined,
    sentAt: 12.5,
    action: 'set',
    node: plain,
  });
});

test.each<[string, unknown]>([
  ['not an object', '[]'],
  ['null', 'null'],
  ['not JSON', '{"action":"get","node":{"key"'],
  ['a web page', '<html><body>Welcome</body></html>'],
  ['empty', ''],
  ['without a node', { action: 'get' }],
  ['with a node that is not an object', { action: 'get', node: 'x' }],
  ['with a node without a key', { action: 'get', node: { value: 'u1', modifiedIndex: 4, createdIndex: 4 } }],
  ['with a key that is not a string', { action: 'get', node: { ...dir('/x'), key: 5 } }],
  ['with a child without a key', { action: 'get', node: { ...dir('/_locks/x'), nodes: [{ dir: true }] } }],
  ['without a modifiedIndex', { action: 'get', node: { key: KEY, value: 'u1', createdIndex: 4 } }],
  ['with a modifiedIndex beyond 2^53', `{"action":"get","node":{"key":"/x","createdIndex":1,"modifiedIndex":1e16}}`],
])('a successful answer that is %s is unusable, and the outcome of its write is unknown', (_, body) => {
  for (const decode of [wire.decodeSnapshot, wire.decodeChange]) {
    const error = thrown(() => decode(wireAnswer(200, body), KEY));
    expect(error).toBeInstanceOf(EtcdUnusableAnswer);
    expect(error).toMatchObject({ httpStatus: 200, outcomeUnknown: true });
  }
});

test.each([
  ['JSON', JSON.stringify(versionBody('3.4.0')), { server: '3.4.23', cluster: '3.4.0' }],
  ['JSON with a line end', `${JSON.stringify(versionBody('2.3.0'))}\n`, { server: '3.4.23', cluster: '2.3.0' }],
  ['the text of 0.4.9', 'etcd 0.4.9', { server: '0.4.9', cluster: undefined }],
  ['the text of 2.0.13', 'etcd 2.0.13\n', { server: '2.0.13', cluster: undefined }],
  [
    'JSON before the cluster agreed',
    JSON.stringify(versionBody('not_decided')),
    { server: '3.4.23', cluster: undefined },
  ],
  ['JSON without a cluster', '{"etcdserver":"2.1.0"}', { server: '2.1.0', cluster: undefined }],
])('decodes a version from %s', (_, body, version) => {
  expect(wire.decodeVersion(wireAnswer(200, body, {}))).toEqual(version);
});

test.each(['<html>', '{}', '{"etcdserver":3}', 'etcd', 'nginx 1.2.3', ''])('%j contains no version', (body) => {
  expect(() => wire.decodeVersion(wireAnswer(200, body, {}))).toThrow(/contains no version/);
});

test('a refused version request is an error', () => {
  expect(() => wire.decodeVersion(wireAnswer(404, '404 page not found\n', {}))).toThrow(EtcdUnusableAnswer);
});

test.each([
  [undefined, undefined],
  ['0.4.9', false],
  ['2.0', false],
  ['2.0.0', false],
  ['2.2.5', false],
  ['2.3', true],
  ['2.3.0', true],
  ['2.10.0', true],
  ['3.0', true],
  ['3.0.0', true],
  ['3.4', true],
  ['3.5.0', true],
  ['10.0.0', true],
])('a cluster of version %s supports refresh: %s', (cluster, supported) => {
  expect(wire.supportsRefresh({ server: '3.4.23', cluster })).toBe(supported);
});

test('members have their URLs; a member that has not started yet has no client URL', () => {
  const started = { id: 'a1', name: 'm1', peerURLs: ['http://a:2380'], clientURLs: ['http://a:2379'] };
  const members = [started, { id: 'b2', name: '', peerURLs: ['http://b:2380'], clientURLs: null }];
  expect(wire.decodeMembers(wireAnswer(200, { members }))).toEqual([
    started,
    { id: 'b2', name: '', peerURLs: ['http://b:2380'], clientURLs: [] },
  ]);
});

test('machines are decoded from a comma-separated list', () => {
  expect(wire.decodeMachines(wireAnswer(200, 'http://a:2379, https://b:2379'))).toEqual([
    'http://a:2379',
    'https://b:2379',
  ]);
});

test('a page without members or machines is refused', () => {
  expect(() => wire.decodeMachines(wireAnswer(200, '<html>'))).toThrow(/lists no machines/);
  expect(() => wire.decodeMembers(wireAnswer(200, { node: {} }))).toThrow(/lists no members/);
  expect(() => wire.decodeMachines(wireAnswer(404, 'x'))).toThrow(EtcdUnusableAnswer);
});

test('the cluster id is the first value of the header', () => {
  expect(wire.clusterIdOf(wireAnswer(200, '', ANSWER_HEADERS))).toBe(CLUSTER);
  expect(wire.clusterIdOf(wireAnswer(200, '', { 'x-etcd-cluster-id': ['a', 'b'] }))).toBe('a');
  expect(wire.clusterIdOf(wireAnswer(200, '', {}))).toBeUndefined();
});

function dir(key: string) {
  return { key, dir: true, modifiedIndex: 4, createdIndex: 4 };
}

function thrown(call: () => unknown): unknown {
  try {
    call();
  } catch (error) {
    return error;
  }
  return undefined;
}
