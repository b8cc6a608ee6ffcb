import { describe, expect, inject, test } from 'vitest';
import * as errors from '../../src/errors.ts';
import type { V2Client } from '../../src/v2/client.ts';
import { closedEndpoint, connect, rejection, serve, serveSilence } from '../support/clients.ts';
import { answer, answerThenCut, inTurn, refuse, silent, type TcpHandler } from '../support/tcp-server.ts';
import { failed, file, got, rawAnswer, versionBody } from '../support/v2-answers.ts';

const DIR = '/_locks/x';
const KEY = '/_locks/x/00000000000000000004';
const done = answer(rawAnswer(200, { action: 'done', node: file(KEY) }));
const noQuorum = answer(rawAnswer(500, failed(300)));
const reportsVersion = answer(rawAnswer(200, versionBody('3.4.0'), {}));

type Call = (client: V2Client, signal?: AbortSignal) => Promise<unknown>;

const unrepeatable: [string, Call][] = [
  ['an append', (client) => client.createInOrder(DIR, 'u1', { ttl: 60 })],
  ['an unconditional set', (client) => client.set(KEY, 'u1')],
  ['a set of a key that must not exist', (client) => client.set(KEY, 'u1', { prevExist: false })],
];

const repeatable: [string, Call][] = [
  ['a read', (client, signal) => client.get(KEY, { signal })],
  ['a quorum read', (client, signal) => client.get(KEY, { quorum: true, recursive: true, signal })],
  ['a set that expects a value', (client, signal) => client.set(KEY, 'u2', { prevValue: 'u1', signal })],
  ['a set that expects an index', (client, signal) => client.set(KEY, 'u2', { prevIndex: 4, signal })],
  ['a renewal', (client, signal) => client.renew(KEY, { prevValue: 'u1', prevIndex: 4, ttl: null, signal })],
  ['a removal that expects a value', (client, signal) => client.delete(KEY, { prevValue: 'u1', signal })],
  ['a removal', (client, signal) => client.delete(KEY, { signal })],
];

const unclear: [string, TcpHandler][] = [
  ['did not answer', silent],
  ['closed the connection', refuse],
  [
    'closed the connection within its answer',
    answerThenCut(rawAnswer(201, { action: 'create', node: file(KEY) }).slice(0, -5)),
  ],
  ['had no quorum', noQuorum],
  ['had no leader', answer(rawAnswer(500, failed(301)))],
  ['was a proxy that lost its server', answer(rawAnswer(502, '<html>', {}))],
  ['answered with a page', answer(rawAnswer(200, '<html>', {}))],
  ['answered without HTTP', answer('SSH-2.0-OpenSSH_9.2\r\n')],
];

const surelyUndone: [string, () => Promise<string>][] = [
  ['refused the connection', closedEndpoint],
  ['did not speak TLS', async () => inject('etcd').replace('http:', 'https:')],
  ['had v2 disabled', async () => (await serve(answer(rawAnswer(404, '404 page not found\n', {})))).url],
];

describe.each(unrepeatable)('%s', (_, call) => {
  test.each(unclear)('is not repeated after a member that %s and may have carried it out', async (_, handler) => {
    const [a, b] = [await serve(handler), await serve(done)];
    const client = connect({ endpoints: [a.url, b.url], readTimeout: 0.3 });
    await expect(call(client)).rejects.toMatchObject({ outcomeUnknown: true, failures: [{ endpoint: a.url }] });
    expect([a.requests.length, b.requests.length]).toEqual([1, 0]);
    await client.get(KEY);
    expect([a.requests.length, b.requests.length]).toEqual([1, 1]);
  });

  test.each(surelyUndone)('fails over from a member that %s', async (_, first) => {
    const b = await serve(done);
    await call(connect({ endpoints: [await first(), b.url] }));
    expect(b.requests.length).toBe(1);
  });

  test('has an unknown outcome if the outcome of any attempt is unknown', async () => {
    const [b, c] = [await serve(noQuorum), await serve(done)];
    const client = connect({ endpoints: [await closedEndpoint(), b.url, c.url] });
    const error = await rejection(call(client), errors.EtcdConnectionFailed);
    expect(error.outcomeUnknown).toBe(true);
    expect(error.failures.map((failure) => failure.endpoint)).toEqual([expect.any(String), b.url]);
    expect(c.requests).toEqual([]);
  });

  test('has a known outcome if every connection was refused', async () => {
    const client = connect({ endpoints: [await closedEndpoint(), await closedEndpoint()] });
    const error = await rejection(call(client), errors.EtcdConnectionFailed);
    expect(error.outcomeUnknown).toBe(false);
    expect(error.failures.length).toBe(2);
  });
});

test.each(repeatable)('%s is repeated on the next member after an unknown outcome', async (_, call) => {
  for (const [, handler] of unclear) {
    const [a, b] = [await serve(handler), await serve(done)];
    await call(connect({ endpoints: [a.url, b.url], readTimeout: 0.3 }));
    expect([a.requests.length, b.requests.length]).toEqual([1, 1]);
    expect(withoutHost(b.requests)).toEqual(withoutHost(a.requests));
  }
});

test('a renewal by refresh is repeated on the next member as a plain write, without a version request', async () => {
  const [a, b] = [await serve(inTurn(reportsVersion, noQuorum)), await serve(done)];
  const client = connect({ endpoints: [a.url, b.url] });
  await client.renew(KEY, { prevValue: 'u1', prevIndex: 4, ttl: 60 });
  expect(a.requests.map(lineAndForm)).toEqual([
    ['GET /version', ''],
    [`PUT /v2/keys${KEY}`, 'ttl=60&prevValue=u1&prevIndex=4&refresh=true'],
  ]);
  expect(b.requests.map(lineAndForm)).toEqual([[`PUT /v2/keys${KEY}`, 'value=u1&ttl=60&prevValue=u1&prevIndex=4']]);
});

describe('a condition that fails on the second member', () => {
  const refusals: [string, TcpHandler][] = [
    ['changed', answer(rawAnswer(412, failed(101)))],
    ['gone', answer(rawAnswer(404, failed(100)))],
  ];

  test.each(refusals)(
    'has an unknown outcome if the first member may have carried out the removal: %s',
    async (_, refusal) => {
      const [a, b] = [await serve(silent), await serve(refusal)];
      const client = connect({ endpoints: [a.url, b.url], readTimeout: 0.3 });
      await expect(client.delete(KEY, { prevValue: 'u1' })).rejects.toMatchObject({
        outcomeUnknown: true,
        index: 6,
        failures: [{ endpoint: a.url }],
      });
    },
  );

  test.each(refusals)(
    'has a known outcome if the first member did not carry out the removal: %s',
    async (_, refusal) => {
      const b = await serve(refusal);
      const client = connect({ endpoints: [await closedEndpoint(), b.url] });
      await expect(client.delete(KEY, { prevValue: 'u1' })).rejects.toMatchObject({ outcomeUnknown: false });
    },
  );
});

describe('the caller’s abort', () => {
  const reasons: [string, unknown][] = [
    ['an error of its own', new Error('enough')],
    ['a failed connection', new errors.EtcdConnectionFailed('of the caller')],
    ['a missing key', new errors.EtcdKeyNotFound('of the caller')],
    ['a failed condition', new errors.EtcdCompareFailed('of the caller')],
    ['no error', 'enough'],
  ];

  test.each(reasons)('ends the call at once with its reason: %s', async (_, reason) => {
    const [a, b, c] = [await serve(refuse), await serveSilence(), await serve(done)];
    const client = connect({ endpoints: [a.url, b.url, c.url] });
    const caller = new AbortController();
    const call = client.delete(KEY, { prevValue: 'u1', signal: caller.signal }).catch((error: unknown) => error);
    await b.nextRequest();
    caller.abort(reason);
    expect(await call).toBe(reason);
    expect(c.requests).toEqual([]);
    await b.allClosed();
  });

  test.each(repeatable)('before the call prevents every request: %s', async (_, call) => {
    const a = await serve(done);
    const reason = new Error('before');
    await expect(call(connect({ endpoints: a.url }), AbortSignal.abort(reason))).rejects.toBe(reason);
    expect([a.requests.length, a.openSockets]).toEqual([0, 0]);
  });

  test('right after the call still ends the call', async () => {
    const a = await serve(answer(rawAnswer(200, got(KEY))));
    const client = connect({ endpoints: a.url });
    const caller = new AbortController();
    const call = client.get(KEY, { signal: caller.signal });
    caller.abort('at once');
    await expect(call).rejects.toBe('at once');
    expect((await client.get(KEY)).node.key).toBe(KEY);
    expect(a.requests.length).toBe(1);
  });

  test('does not affect other calls of the same client', async () => {
    const a = await serve(inTurn(silent, answer(rawAnswer(200, got(KEY)))));
    const client = connect({ endpoints: a.url });
    const caller = new AbortController();
    const aborted = client.get(KEY, { signal: caller.signal }).catch((error: unknown) => error);
    await a.nextRequest();
    const other = client.get(KEY);
    caller.abort('enough');
    expect(await aborted).toBe('enough');
    expect((await other).node.key).toBe(KEY);
  });
});

const withoutHost = (requests: readonly string[]) => requests.map((request) => request.replace(/^host: .*$/im, ''));

const lineAndForm = (request: string) => {
  const [line = '', ...rest] = request.split('\r\n');
  return [line.replace(/ HTTP.*/, ''), rest.at(-1)];
};
