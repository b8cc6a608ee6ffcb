// Answers of a broken or hostile member. The decoders either accept an answer or throw an EtcdException.
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { EtcdException, EtcdUnusableAnswer } from '../../../src/errors.ts';
import * as wire from '../../../src/v2/wire.ts';
import { failed, file, got, wireAnswer } from '../../support/v2-answers.ts';

const DIR = '/_locks/x';
const KEY = `${DIR}/00000000000000000004`;

type Decode = (answer: wire.WireAnswer) => unknown;

const decoders: Readonly<Record<string, Decode>> = {
  snapshot: (answer) => wire.decodeSnapshot(answer, KEY),
  root: (answer) => wire.decodeSnapshot(answer, '/'),
  change: (answer) => wire.decodeChange(answer, KEY),
  append: (answer) => wire.decodeAppend(answer, DIR, 'u1'),
  event: (answer) => wire.decodeEvent(answer, KEY),
  start: (answer) => wire.decodeStart(answer),
  version: (answer) => wire.supportsRefresh(wire.decodeVersion(answer)),
  members: wire.decodeMembers,
  machines: wire.decodeMachines,
};

/** Returns the EtcdException that the decoder throws, if any. Throws any other error. */
function refusal(decode: Decode, answer: wire.WireAnswer): EtcdException | undefined {
  try {
    decode(answer);
    return undefined;
  } catch (error) {
    if (error instanceof EtcdException) return error;
    throw error;
  }
}

/** Values of wrong types, some of which cannot be converted to a string. */
const odd = fc.oneof(
  fc.jsonValue(),
  fc.constantFrom(null, -1, 0.5, Number.MAX_VALUE, '', '\ud800', [], {}, { toString: 1 }, { toString: 1, valueOf: 2 }, [
    { toString: 1 },
  ]),
);
const node = fc.letrec((tie) => ({
  node: fc.record(
    {
      key: fc.oneof(fc.constantFrom(KEY, DIR, '/', `${DIR}/..`), odd),
      value: odd,
      dir: odd,
      ttl: odd,
      expiration: odd,
      createdIndex: fc.oneof(fc.constant(4), odd),
      modifiedIndex: fc.oneof(fc.constant(4), odd),
      nodes: fc.oneof({ depthSize: 'small' }, fc.array(tie('node'), { maxLength: 2 }), odd),
    },
    { requiredKeys: [] },
  ),
})).node;
const fields = {
  action: odd,
  node: fc.oneof(node, odd),
  prevNode: fc.oneof(node, odd),
  errorCode: fc.oneof(fc.constantFrom(100, 101, 300, 401), odd),
  message: odd,
  cause: odd,
  index: odd,
  members: fc.oneof(fc.array(fc.record({ id: odd, name: odd, peerURLs: odd, clientURLs: odd })), odd),
  etcdserver: odd,
  etcdcluster: odd,
};
const body = fc.oneof(
  fc.record(fields, { requiredKeys: [] }).map((value) => JSON.stringify(value)),
  fc.json(),
  fc.string(),
);
const status = fc.oneof(
  fc.constantFrom(200, 201, 400, 401, 403, 404, 412, 500, 503),
  fc.integer({ min: 200, max: 599 }),
);
const headers = fc.record(
  { 'x-etcd-index': fc.oneof(fc.constant('7'), fc.string(), fc.array(fc.string())), 'x-etcd-cluster-id': fc.string() },
  { requiredKeys: [] },
);

test.each(Object.entries(decoders))('any %s is decoded or refused with an EtcdException', (_, decode) => {
  fc.assert(
    fc.property(status, body, headers, (code, text, head) => {
      refusal(decode, wireAnswer(code, text, head));
    }),
    { numRuns: 1000 },
  );
});

test.each([
  ['a cause that is not a string', { ...failed(100), cause: { toString: 1 } }],
  ['a message that is not a string', { ...failed(101), message: { toString: 1 } }],
  ['no message', { errorCode: 100, index: 6 }],
  ['an index that is a fraction', { ...failed(100), index: 0.5 }],
  ['an index below 0', { ...failed(100), index: -1 }],
  ['a code that is not a number', { ...failed(100), errorCode: '100' }],
  ['a code that is a fraction', { ...failed(100), errorCode: 100.5 }],
])('an error with %s is unusable, whatever its status', (_, text) => {
  for (const code of [200, 401, 403, 404, 412, 500]) {
    const error = refusal(decoders['snapshot'] as Decode, wireAnswer(code, text));
    expect(error).toBeInstanceOf(EtcdUnusableAnswer);
    expect(error?.outcomeUnknown).toBe(code === 200 || code === 500);
  }
});

test.each([
  ['an action that is not a string', { action: { toString: 1 }, node: file(KEY) }],
  ['no action', { node: file(KEY) }],
])('a change with %s is unusable', (_, text) => {
  expect(refusal(decoders['change'] as Decode, wireAnswer(200, text))).toBeInstanceOf(EtcdUnusableAnswer);
});

test.each([
  ['value', 5],
  ['dir', 'true'],
  ['ttl', '60'],
  ['ttl', 0.5],
  ['expiration', 5],
  ['nodes', {}],
  ['nodes', 'none'],
])('a node with the %s %j is unusable', (name, value) => {
  expect(refusal(decoders['snapshot'] as Decode, wireAnswer(200, got(KEY, { [name]: value })))).toMatchObject({
    message: expect.stringContaining(`has ${name} `),
    code: 'ETCD_UNUSABLE_ANSWER',
  });
});

test.each([
  ['an id', { id: { toString: 1 } }],
  ['a name', { name: { toString: 1 } }],
  ['client URLs', { clientURLs: [{ toString: 1 }] }],
  ['peer URLs', { peerURLs: 'http://a:2380' }],
])('a member with %s of a wrong type is unusable', (_, wrong) => {
  const member = { id: 'a1', name: 'm1', peerURLs: [], clientURLs: [], ...wrong };
  expect(refusal(wire.decodeMembers, wireAnswer(200, { members: [member] }))).toBeInstanceOf(EtcdUnusableAnswer);
});

test('deeply nested directories are decoded or refused, without a stack overflow', () => {
  const levels = 100_000;
  const open = `{"key":"/x","dir":true,"createdIndex":1,"modifiedIndex":1,"nodes":[`;
  const text = `{"action":"get","node":${open.repeat(levels)}${']}'.repeat(levels)}}`;
  for (const decode of Object.values(decoders).slice(0, 5))
    expect(refusal(decode, wireAnswer(200, text))).toBeInstanceOf(EtcdUnusableAnswer);
  const [deepest, ...above] = Array.from({ length: 3000 }, (_, level) => KEY + '/a'.repeat(level)).reverse();
  const opened = above.reverse().map((key) => open.replace('/x', key));
  const tree = `${opened.join('')}${JSON.stringify(file(deepest ?? ''))}${']}'.repeat(above.length)}`;
  let { node } = wire.decodeSnapshot(wireAnswer(200, `{"action":"get","node":${tree}}`), KEY);
  while (node.nodes[0]) node = node.nodes[0];
  expect(node).toMatchObject({ key: deepest, value: 'u1' });
});

describe('the key of an answer is compared with the requested key:', () => {
  const listing = (...nodes: object[]) => ({
    action: 'get',
    node: { ...file(KEY), dir: true, value: undefined, nodes },
  });
  test.each<[string, string, unknown]>([
    ['a read of another key', 'snapshot', got('/other')],
    ['a read of a key below', 'snapshot', got(`${KEY}/a`)],
    ['a read of the root', 'snapshot', { action: 'get', node: { dir: true } }],
    [
      'a listing of the root with a key two levels below',
      'root',
      { action: 'get', node: { dir: true, nodes: [file('/a/b')] } },
    ],
    ['a listing with a key elsewhere', 'snapshot', listing(file('/other/4'))],
    ['a listing with a key beside', 'snapshot', listing(file(`${KEY}4/1`))],
    ['a listing that contains the directory itself', 'snapshot', listing(file(KEY))],
    ['a listing with a key further below', 'snapshot', listing(file(`${KEY}/a/b`))],
    ['a listing with an empty name', 'snapshot', listing(file(`${KEY}/`))],
    ['a listing with "..", which etcd would resolve to the directory above', 'snapshot', listing(file(`${KEY}/..`))],
    ['a listing with "."', 'snapshot', listing(file(`${KEY}/.`))],
    ['a listing with a lone surrogate', 'snapshot', listing(file(`${KEY}/\ud800`))],
    [
      'a listing with a key elsewhere in a subdirectory',
      'snapshot',
      listing({ ...file(`${KEY}/a`), nodes: [file('/other')] }),
    ],
    ['a change of another key', 'change', { action: 'set', node: file('/other') }],
    [
      'a change whose previous node has another key',
      'change',
      { action: 'set', node: file(KEY), prevNode: file('/other') },
    ],
    ['an append elsewhere', 'append', { action: 'create', node: file('/other/00000000000000000004') }],
    ['an append to the directory itself', 'append', { action: 'create', node: file(DIR) }],
    ['an append further below', 'append', { action: 'create', node: file(`${KEY}/1`) }],
    ['an append of another value', 'append', { action: 'create', node: file(KEY, { value: 'u2' }) }],
    ['an event on another key', 'event', { action: 'set', node: file('/other') }],
    ['an event on a key beside', 'event', { action: 'set', node: file(`${KEY}4`) }],
  ])('%s is unusable', (_, decoder, text) => {
    const error = refusal(decoders[decoder] as Decode, wireAnswer(200, text));
    expect(error).toBeInstanceOf(EtcdUnusableAnswer);
    expect(error?.message).toMatch(/is about|has the value/);
  });

  test.each([
    ['the key itself', KEY],
    ['the directory of the key', DIR],
    ['a directory further above', '/_locks'],
    ['a key below', `${KEY}/1`],
  ])('an event on %s is usable', (_, key) => {
    expect(wire.decodeEvent(wireAnswer(200, { action: 'delete', node: file(key) }), KEY)?.node.key).toBe(key);
  });
});
