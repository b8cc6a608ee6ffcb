import { describe, expect, test } from 'vitest';
import * as errors from '../../src/errors.ts';
import { longPoll } from '../../src/v2/watch.ts';
import { closedEndpoint, connect, rejection, serve, serveSilence } from '../support/clients.ts';
import { answer, answerThenCut, refuse } from '../support/tcp-server.ts';
import { failed, file, rawAnswer } from '../support/v2-answers.ts';

const KEY = '/_locks/x/00000000000000000004';
/** The headers that etcd sends at the start of a poll, before there is an event. */
const HEAD = 'HTTP/1.1 200 OK\r\nx-etcd-index: 7\r\ntransfer-encoding: chunked\r\n\r\n';
const EVENT = JSON.stringify({ action: 'set', node: file(KEY, { modifiedIndex: 9 }) });
const chunk = (text: string) => `${Buffer.byteLength(text).toString(16)}\r\n${text}\r\n`;
const LAST_CHUNK = '0\r\n\r\n';

test('an event arrives in the body of an answer whose headers arrived long before', async () => {
  const etcd = await serve(answer(HEAD + chunk(EVENT) + LAST_CHUNK));
  const event = await connect({ endpoints: etcd.url }).watch(KEY, { after: 7 });
  expect(event).toMatchObject({ action: 'set', index: 9, node: { key: KEY, value: 'u1' } });
});

test.each([
  ['the index after the last one seen', { after: 7 }, 'wait=true&waitIndex=8'],
  ['the whole directory', { after: 7, recursive: true }, 'wait=true&waitIndex=8&recursive=true'],
])('a poll asks for %s', async (_, options, query) => {
  const etcd = await serve(answer(rawAnswer(200, EVENT)));
  await connect({ endpoints: etcd.url }).watch(KEY, options);
  expect(await etcd.nextRequest()).toMatch(`GET /v2/keys${KEY}?${query} HTTP/1.1\r\n`);
});

describe('a wait without an event', () => {
  test.each([
    ['chunked', HEAD + LAST_CHUNK],
    ['of length 0', rawAnswer(200, '')],
  ])('resolves to undefined when the server ends it with an empty body, %s', async (_, raw) => {
    const etcd = await serve(answer(raw));
    expect(await connect({ endpoints: etcd.url }).watch(KEY, { after: 7 })).toBeUndefined();
  });

  test.each([
    ['after its headers', HEAD],
    ['from the beginning', ''],
    ['in the middle of the event', HEAD + chunk(EVENT.slice(0, 20))],
  ])('resolves to undefined after its timeout, and closes its socket: silent %s', async (_, head) => {
    const etcd = await serveSilence(head);
    const client = connect({ endpoints: etcd.url });
    expect(await client.watch(KEY, { after: 7, timeout: 0.2 })).toBeUndefined();
    expect(etcd.requests.length).toBe(1);
    await etcd.allClosed();
  });

  test('may last longer than `readTimeout`', async () => {
    const etcd = await serveSilence(HEAD);
    const client = connect({ endpoints: etcd.url, readTimeout: 0.1 });
    const watched = client.watch(KEY, { after: 7, timeout: 0.5 });
    const startedAt = performance.now();
    await etcd.nextRequest();
    expect(await watched).toBeUndefined();
    expect(performance.now() - startedAt).toBeGreaterThan(400);
  });

  test('ends after 20 s by default', async () => {
    const timeouts: number[] = [];
    const send = async (_: unknown, { timeout }: { timeout: number }) => void timeouts.push(timeout);
    await longPoll(KEY, { after: 7 }, send);
    await longPoll(KEY, { after: 7, timeout: 3 }, send);
    expect(timeouts).toEqual([20, 3]);
  });
});

describe('a wait whose connection', () => {
  test.each([
    ['in the middle of the body', HEAD + chunk(EVENT).slice(0, 20)],
    ['between two chunks', HEAD + chunk(EVENT)],
    ['after the headers', HEAD],
    ['before the declared length', rawAnswer(200, EVENT).slice(0, -3)],
  ])('is closed %s rejects as a failed connection', async (_, raw) => {
    const etcd = await serve(answerThenCut(raw));
    await rejection(connect({ endpoints: etcd.url }).watch(KEY, { after: 7 }), errors.EtcdConnectionFailed);
  });

  test('is closed before an answer rejects as a failed connection, and the next poll goes to the next member', async () => {
    const [a, b] = [await serve(refuse), await serve(answer(rawAnswer(200, EVENT)))];
    const client = connect({ endpoints: [a.url, b.url] });
    await rejection(client.watch(KEY, { after: 7 }), errors.EtcdConnectionFailed);
    expect(await client.watch(KEY, { after: 7 })).toMatchObject({ index: 9 });
    expect([a.requests.length, b.requests.length]).toEqual([1, 1]);
  });

  test('is refused fails over to the next member', async () => {
    const b = await serve(answer(rawAnswer(200, EVENT)));
    const client = connect({ endpoints: [await closedEndpoint(), b.url] });
    expect(await client.watch(KEY, { after: 7 })).toMatchObject({ index: 9 });
  });
});

test('a cleared history is an error, and no other member is asked', async () => {
  const [a, b] = [await serve(answer(rawAnswer(400, failed(401)))), await serve(answer(rawAnswer(200, EVENT)))];
  const client = connect({ endpoints: [a.url, b.url] });
  const error = await rejection(client.watch(KEY, { after: 7 }), errors.EtcdEventIndexCleared);
  expect(error).toMatchObject({ errorCode: 401, index: 6, httpStatus: 400 });
  expect(b.requests).toEqual([]);
});

test.each([
  ['after its headers', HEAD],
  ['before any answer', ''],
])('an abort in the middle of a poll, %s, closes its socket', async (_, head) => {
  const [a, b] = [await serveSilence(head), await serve(answer(rawAnswer(200, EVENT)))];
  const client = connect({ endpoints: [a.url, b.url] });
  const caller = new AbortController();
  const watched = client.watch(KEY, { after: 7, signal: caller.signal }).catch((error: unknown) => error);
  await a.nextRequest();
  const reason = new Error('enough');
  caller.abort(reason);
  expect(await watched).toBe(reason);
  await a.allClosed();
  expect(b.requests).toEqual([]);
});

test('an event without a node is refused', async () => {
  const etcd = await serve(answer(rawAnswer(200, '{"action":"set"}')));
  await rejection(connect({ endpoints: etcd.url }).watch(KEY, { after: 7 }), errors.EtcdUnusableAnswer);
});

test.each([-1, 1.5, Number.NaN])('a wait after index %s is refused', async (after) => {
  const error = await rejection(connect({ endpoints: await closedEndpoint() }).watch(KEY, { after }), RangeError);
  expect(error.message).toContain(`got ${after}`);
});

test.each([
  ['timeout', (client: ReturnType<typeof connect>) => client.watch(KEY, { after: 7, timeout: Number.NaN })],
  ['attemptTimeout', (client: ReturnType<typeof connect>) => client.get(KEY, { attemptTimeout: Number.NaN })],
])('a %s of NaN is refused', async (what, call) => {
  const error = await rejection(call(connect({ endpoints: await closedEndpoint() })), RangeError);
  expect(error.message).toBe(`${what} must be a number of seconds > 0, got NaN`);
});

test('`started` gets the index of the store as soon as the server has accepted the wait', async () => {
  const etcd = await serveSilence(HEAD);
  const client = connect({ endpoints: etcd.url });
  const abort = new AbortController();
  const watched = client.watch(KEY, { signal: abort.signal, started: (index) => abort.abort(`began at ${index}`) });
  await expect(watched).rejects.toBe('began at 7');
});

test('`started` is not called for a refused wait', async () => {
  const etcd = await serve(answer(rawAnswer(400, failed(401, 'cleared', '[9/8]'))));
  const started: number[] = [];
  const watched = connect({ endpoints: etcd.url }).watch(KEY, { after: 7, started: (index) => started.push(index) });
  await rejection(watched, errors.EtcdEventIndexCleared);
  expect(started).toEqual([]);
});

test('a wait with an invalid index is refused, and its connection is closed', async () => {
  const etcd = await serveSilence(HEAD.replace('x-etcd-index: 7', 'x-etcd-index: seven'));
  const watched = connect({ endpoints: etcd.url }).watch(KEY, { after: 7, started: () => {} });
  await rejection(watched, errors.EtcdUnusableAnswer);
  await etcd.allClosed();
});

test('the wait rejects with the error that `started` throws, and no other member is asked', async () => {
  const [a, b] = [await serveSilence(HEAD), await serveSilence(HEAD)];
  const started = () => {
    throw new TypeError('mine');
  };
  const watched = connect({ endpoints: [a.url, b.url] }).watch(KEY, { after: 7, started });
  await expect(watched).rejects.toThrow(new TypeError('mine'));
  await a.allClosed();
  expect(b.requests).toEqual([]);
});

test('`started` is not called if another cluster than the expected one answers', async () => {
  const etcd = await serveSilence(HEAD.replace('\r\n', '\r\nx-etcd-cluster-id: cdf8\r\n'));
  const started: number[] = [];
  const client = connect({ endpoints: etcd.url, expectedClusterId: 'abcd' });
  const watched = client.watch(KEY, { after: 7, started: (index) => started.push(index) });
  await rejection(watched, errors.EtcdClusterIdChanged);
  expect(started).toEqual([]);
  await etcd.allClosed();
});
