import fc from 'fast-check';
import { expect, test } from 'vitest';
import { EtcdException, EtcdInsufficientPermissions } from '../../../src/errors.ts';
import { etcdError } from '../../../src/v2/error-codes.ts';
import type { Change, CreateOptions, DeleteOptions, GetOptions, Node, SetOptions } from '../../../src/v2/keys-api.ts';
import * as wire from '../../../src/v2/wire.ts';

const segment = fc
  .string({ unit: 'grapheme', minLength: 1, maxLength: 6 })
  .map((text) => text.replaceAll('/', '|'))
  .filter((text) => text !== '.' && text !== '..' && !/\p{Surrogate}/u.test(text));
const key = fc.array(segment, { minLength: 1, maxLength: 4 }).map((names) => `/${names.join('/')}`);
const text = fc.string({ unit: 'grapheme', maxLength: 20 });
const index = fc.maxSafeNat();
const maybe = <T>(value: fc.Arbitrary<T>) => fc.option(value, { nil: undefined });
const ttl = maybe(fc.option(fc.nat()));
const conditions = {
  prevValue: maybe(text.filter((value) => value !== '')),
  prevIndex: maybe(fc.integer({ min: 1, max: Number.MAX_SAFE_INTEGER })),
};

/** Sends a request as text, and decodes it as the server does. */
function received({ method, path, query, form }: wire.WireRequest): wire.KeysRequest {
  const fields = wire.parseFields(form ?? '', query);
  const asked = decodeURIComponent(path.slice('/keys'.length));
  return wire.decodeKeysRequest(method, asked, fields).request;
}

test('a read survives encoding and decoding', () => {
  const options = fc.record({ recursive: fc.boolean(), sorted: fc.boolean(), quorum: fc.boolean() });
  fc.assert(
    fc.property(key, options, (at, asked: GetOptions) => {
      expect(received(wire.encodeGet(at, asked))).toEqual({ call: 'get', key: at, options: asked });
    }),
  );
});

test('a wait survives encoding and decoding', () => {
  const after = maybe(fc.nat({ max: Number.MAX_SAFE_INTEGER - 1 }));
  fc.assert(
    fc.property(key, after, fc.boolean(), (at, from, recursive) => {
      const expected = { call: 'watch', key: at, options: { after: from, recursive }, stream: false };
      expect(received(wire.encodeWatch(at, { after: from, recursive }))).toEqual(expected);
    }),
  );
});

test('a removal survives encoding and decoding', () => {
  const options = fc.record({ ...conditions, dir: fc.boolean(), recursive: fc.boolean() });
  fc.assert(
    fc.property(key, options, (at, asked: DeleteOptions) => {
      expect(received(wire.encodeDelete(at, asked))).toEqual({ call: 'delete', key: at, options: asked });
    }),
  );
});

test('an append survives encoding and decoding', () => {
  const what = fc.oneof(
    fc.record({ value: text, dir: fc.constant(false) }),
    fc.constant({ value: undefined, dir: true as const }),
  );
  fc.assert(
    fc.property(key, what, ttl, (at, { value, dir }, seconds) => {
      const options: CreateOptions = { ttl: seconds, dir };
      const expected = { call: 'createInOrder', key: at, value, options: { ttl: seconds ?? null, dir } };
      expect(received(wire.encodeCreateInOrder(at, value, options))).toEqual(expected);
    }),
  );
});

test('a write survives encoding and decoding; contradictory options are decoded as etcd does', () => {
  const what = fc.oneof(
    fc.record({ value: text, ttl, dir: fc.constant(false), refresh: fc.constant(false) }),
    fc.record({ value: fc.constant(undefined), ttl, dir: fc.constant(true), refresh: fc.constant(false) }),
    fc.record({ value: fc.constant(undefined), ttl: fc.nat(), dir: fc.boolean(), refresh: fc.constant(true) }),
  );
  const how = fc.record({ ...conditions, prevExist: maybe(fc.boolean()) });
  fc.assert(
    fc.property(key, what, how, (at, { value, ...rest }, { prevExist, prevValue, prevIndex }) => {
      const options = { ...rest, prevValue, prevIndex, ...(prevExist === undefined ? {} : { prevExist }) };
      const creates = prevExist === false;
      const refresh = options.refresh && !creates;
      const expected: SetOptions = {
        ...options,
        ttl: options.ttl ?? null,
        refresh,
        prevValue: creates ? undefined : prevValue,
        prevIndex: creates ? undefined : prevIndex,
      };
      const kept = options.dir || refresh ? undefined : (value ?? '');
      expect(received(wire.encodeSet(at, value, options))).toEqual({
        call: 'set',
        key: at,
        value: kept,
        options: expected,
      });
    }),
  );
});

const { tree } = fc.letrec<{ tree: Node }>((tie) => ({
  tree: fc
    .record({
      key,
      createdIndex: index.map((n) => n + 1).filter(Number.isSafeInteger),
      modifiedIndex: index.map((n) => n + 1).filter(Number.isSafeInteger),
      expiry: maybe(fc.record({ ttl: fc.integer({ min: 1 }), expiration: fc.constant('2026-11-21T02:49:39.437Z') })),
      content: fc.oneof(
        { depthSize: 'small' },
        text.map((value) => ({ value, dir: false, nodes: [] })),
        fc.array(tie('tree'), { maxLength: 3 }).map((nodes) => ({ dir: true, nodes })),
      ),
    })
    .map(({ expiry, content, ...rest }) => ({ ...rest, ...expiry, ...content })),
}));

/** Returns the node with each child in its directory. */
const placed = (node: Node, at: string): Node => ({
  ...node,
  key: at,
  nodes: node.nodes.map((child) => placed(child, at + child.key.slice(child.key.lastIndexOf('/')))),
});
const node = tree.map((top) => placed(top, top.key));

/** Returns a server's reply as the client receives it. */
const arriving = ({ status, headers, body }: wire.WireReply): wire.WireAnswer => ({
  status,
  headers: Object.fromEntries(Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value])),
  body,
  sentAt: 12.5,
});

const common = { clusterId: undefined, sentAt: 12.5 };

test('the result of a read survives encoding and decoding', async () => {
  await fc.assert(
    fc.asyncProperty(node, index, async (found, at) => {
      const snapshot = { ...common, node: found, index: at };
      expect(wire.decodeSnapshot(arriving(await wire.encodeSnapshot(snapshot)), found.key)).toEqual(snapshot);
    }),
  );
});

test('the result of a write and an event survive encoding and decoding', () => {
  const actions = fc.constantFrom('set', 'create', 'update', 'compareAndSwap', 'delete', 'compareAndDelete', 'expire');
  fc.assert(
    fc.property(actions, node, maybe(node), (action, after, before) => {
      const change: Change = {
        ...common,
        action,
        node: after,
        ...(before ? { prevNode: placed(before, after.key) } : {}),
      };
      const event = { ...change, index: after.modifiedIndex };
      const line = { ...wire.encodeWaiting(1), body: wire.encodeEventLine(event) };
      expect(wire.decodeChange(arriving(wire.encodeChange(change, false)), after.key)).toEqual(change);
      expect(wire.decodeEvent(arriving(line), after.key)).toEqual(event);
    }),
  );
});

test('an error survives encoding and decoding', () => {
  const codes = fc.constantFrom(
    100,
    101,
    102,
    104,
    105,
    107,
    108,
    110,
    201,
    202,
    203,
    209,
    210,
    211,
    212,
    300,
    301,
    400,
    401,
  );
  fc.assert(
    fc.property(
      codes,
      text.filter((cause) => cause !== ''),
      index,
      (errorCode, cause, at) => {
        const error = etcdError(errorCode, cause, at);
        const arrived = errorIn(arriving(wire.encodeError(error)));
        expect(arrived.constructor).toBe(error.constructor);
        expect(arrived).toMatchObject({ errorCode, cause, index: at, message: error.message });
      },
    ),
  );
});

test.each([
  [
    new Error('no member could answer'),
    { errorCode: 300, httpStatus: 500, cause: 'no member could answer', outcomeUnknown: true },
  ],
  ['just a string', { errorCode: 300, httpStatus: 500, cause: 'just a string' }],
])('an error that is not etcd’s, %s, is received as a failure of the server', (error, expected) => {
  expect(errorIn(arriving(wire.encodeError(error)))).toMatchObject(expected);
});

test('insufficient permissions survive encoding and decoding', () => {
  const refused = wire.encodeError(new EtcdInsufficientPermissions('refused with 401'));
  expect(errorIn(arriving(refused))).toMatchObject({
    errorCode: 110,
    httpStatus: 401,
    code: 'ETCD_INSUFFICIENT_PERMISSIONS',
  });
});

test('the version and the members survive encoding and decoding', () => {
  const member = {
    id: '2e12',
    name: 'm1',
    peerURLs: ['http://a:2380'],
    clientURLs: ['http://a:2379', 'http://b:2379'],
  };
  const page = (body: string) => arriving({ status: 200, headers: {}, body });
  expect(wire.decodeMembers(page(wire.encodeMembers([member])))).toEqual([member]);
  expect(wire.decodeMachines(page(wire.encodeMachines([member])))).toEqual(member.clientURLs);
  for (const version of [
    { server: '3.4.23', cluster: '3.4.0' },
    { server: '3.4.23', cluster: undefined },
  ])
    expect(wire.decodeVersion(page(wire.encodeVersion(version)))).toEqual(version);
});

function errorIn(answer: wire.WireAnswer): EtcdException {
  try {
    wire.decodeSnapshot(answer, '/x');
  } catch (error) {
    if (error instanceof EtcdException) return error;
  }
  throw new Error('expected an error');
}
