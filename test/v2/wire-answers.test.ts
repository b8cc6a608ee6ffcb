import { expect, test } from 'vitest';
import { EtcdUnusableAnswer } from '../../src/errors.ts';
import * as wire from '../../src/v2/wire.ts';
import { ANSWER_HEADERS, CLUSTER, failed, file, got, versionBody, wireAnswer } from '../support/v2-answers.ts';

const KEY = '/_locks/x/00000000000000000004';
const EXPIRATION = '2026-01-01T00:00:00.000000001Z';
const about = { clusterId: CLUSTER, sentAt: 12.5 };
const plain = { key: KEY, value: 'u1', dir: false, createdIndex: 4, modifiedIndex: 4, nodes: [] };

test('an appended entry has its key, its TTL and when the request was sent', () => {
  const node = file(KEY, { expiration: EXPIRATION, ttl: 60 });
  expect(wire.decodeChange(wireAnswer(201, { action: 'create', node }), KEY)).toEqual({
    ...about,
    action: 'create',
    node: { ...plain, expiration: EXPIRATION, ttl: 60 },
  });
});

test('an entry that expires at once has an expiration and no TTL', () => {
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

test('a directory whose last child is gone, which comes without `nodes`, is empty', () => {
  const answer = wireAnswer(200, { action: 'get', node: dir('/_locks/x') });
  expect(wire.decodeSnapshot(answer, '/_locks/x').node).toEqual({
    key: '/_locks/x',
    dir: true,
    createdIndex: 4,
    modifiedIndex: 4,
    nodes: [],
  });
});

test('the root, which etcd tells neither key nor index of, is the directory "/"', () => {
  const answer = wireAnswer(200, { action: 'get', node: { dir: true, nodes: [dir('/a')] } });
  const { node } = wire.decodeSnapshot(answer, '/');
  expect(node).toMatchObject({ key: '/', dir: true, createdIndex: 0, modifiedIndex: 0 });
  expect(node.nodes.map(({ key }) => key)).toEqual(['/a']);
});

test('a removal tells what was there before', () => {
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

test('a renewal keeps the created index', () => {
  const node = file(KEY, { modifiedIndex: 11, ttl: 60 });
  const change = wire.decodeChange(wireAnswer(200, { action: 'compareAndSwap', node, prevNode: file(KEY) }), KEY);
  expect(change.node).toMatchObject({ createdIndex: 4, modifiedIndex: 11, value: 'u1' });
});

test('an event’s index is that of the change, not that of the moment the poll began', () => {
  const body = { action: 'expire', node: { key: KEY, createdIndex: 4, modifiedIndex: 31 }, prevNode: file(KEY) };
  expect(wire.decodeEvent(wireAnswer(200, body), KEY)).toMatchObject({ action: 'expire', index: 31, prevNode: plain });
});

test.each(['', '\n', ' \r\n'])('a wait that ends with the body %j saw nothing', (body) => {
  expect(wire.decodeEvent(wireAnswer(200, body), KEY)).toBeUndefined();
});

test('an event with another status or a broken body is no silence', () => {
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
])('a snapshot whose X-Etcd-Index is %s cannot be used', (_, headers) => {
  const decode = () => wire.decodeSnapshot(wireAnswer(200, got(KEY), headers), KEY);
  expect(decode).toThrow(EtcdUnusableAnswer);
  expect(decode).toThrow(/X-Etcd-Index/);
});

test('the greatest exact index is taken as it is, also where the header came twice', () => {
  const headers = { 'x-etcd-index': ['9007199254740991', '1'] };
  expect(wire.decodeSnapshot(wireAnswer(200, got(KEY), headers), KEY).index).toBe(Number.MAX_SAFE_INTEGER);
});

test('a write needs no X-Etcd-Index, and an old server no cluster id', () => {
  expect(wire.decodeChange(wireAnswer(200, { action: 'set', node: file(KEY) }, {}), KEY)).toEqual({
    clusterId: undefined,
    sentAt: 12.5,
    action: 'set',
    node: plain,
  });
});

test.each<[string, unknown]>([
  ['no object', '[]'],
  ['null', 'null'],
  ['no JSON', '{"action":"get","node":{"key"'],
  ['a web page', '<html><body>Welcome</body></html>'],
  ['empty', ''],
  ['without a node', { action: 'get' }],
  ['with a node that is no object', { action: 'get', node: 'x' }],
  ['with a node that has no key', { action: 'get', node: { value: 'u1', modifiedIndex: 4, createdIndex: 4 } }],
  ['with a key that is no text', { action: 'get', node: { ...dir('/x'), key: 5 } }],
  ['with a child that has no key', { action: 'get', node: { ...dir('/_locks/x'), nodes: [{ dir: true }] } }],
  ['without a modifiedIndex', { action: 'get', node: { key: KEY, value: 'u1', createdIndex: 4 } }],
  ['with a modifiedIndex beyond 2^53', `{"action":"get","node":{"key":"/x","createdIndex":1,"modifiedIndex":1e16}}`],
])('a successful answer that is %s cannot be used, and its write may have happened', (_, body) => {
  for (const decode of [wire.decodeSnapshot, wire.decodeChange]) {
    const error = thrown(() => decode(wireAnswer(200, body), KEY));
    expect(error).toBeInstanceOf(EtcdUnusableAnswer);
    expect(error).toMatchObject({ status: 200, outcomeUnknown: true });
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
])('a version is read from %s', (_, body, version) => {
  expect(wire.decodeVersion(wireAnswer(200, body, {}))).toEqual(version);
});

test.each(['<html>', '{}', '{"etcdserver":3}', 'etcd', 'nginx 1.2.3', ''])('%j tells no version', (body) => {
  expect(() => wire.decodeVersion(wireAnswer(200, body, {}))).toThrow(/does not tell a version/);
});

test('a version that is refused is an error of its own', () => {
  expect(() => wire.decodeVersion(wireAnswer(404, '404 page not found\n', {}))).toThrow(EtcdUnusableAnswer);
});

test.each([
  [undefined, false],
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
])('a cluster of version %s knows refresh: %s', (cluster, known) => {
  expect(wire.knowsRefresh({ server: '3.4.23', cluster })).toBe(known);
});

test('members are listed with their URLs; one that has not started yet has no client URL', () => {
  const started = { id: 'a1', name: 'm1', peerURLs: ['http://a:2380'], clientURLs: ['http://a:2379'] };
  const members = [started, { id: 'b2', name: '', peerURLs: ['http://b:2380'], clientURLs: null }];
  expect(wire.decodeMembers(wireAnswer(200, { members }))).toEqual([
    started,
    { id: 'b2', name: '', peerURLs: ['http://b:2380'], clientURLs: [] },
  ]);
});

test('machines are listed as text', () => {
  expect(wire.decodeMachines(wireAnswer(200, 'http://a:2379, https://b:2379'))).toEqual([
    'http://a:2379',
    'https://b:2379',
  ]);
});

test('a page that lists neither is refused', () => {
  expect(() => wire.decodeMachines(wireAnswer(200, '<html>'))).toThrow(/lists no machines/);
  expect(() => wire.decodeMembers(wireAnswer(200, { node: {} }))).toThrow(/lists no members/);
  expect(() => wire.decodeMachines(wireAnswer(404, 'x'))).toThrow(EtcdUnusableAnswer);
});

test('the cluster id is the first of the header’s values', () => {
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
