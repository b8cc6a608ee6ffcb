import { inspect } from 'node:util';
import { describe, expect, inject, test } from 'vitest';
import * as errors from '../../src/errors.ts';
import { closedEndpoint, connect, rejection, serve } from '../support/clients.ts';
import { answer, inTurn, refuse, silent, type TcpHandler } from '../support/tcp-server.ts';
import { failed, got, rawAnswer } from '../support/v2-answers.ts';

const KEY = '/_locks/x/00000000000000000004';
const good = answer(rawAnswer(200, got(KEY)));
const noQuorum = answer(rawAnswer(500, failed(300, 'Raft Internal Error')));
const v2Disabled = answer(rawAnswer(404, '404 page not found\n', { 'content-type': 'text/plain' }));
const badGateway = answer(rawAnswer(502, '<html>', {}));

const url = (handler: TcpHandler) => async () => (await serve(handler)).url;

test('a client stays with the member that answers', async () => {
  const [a, b] = [await serve(good), await serve(good)];
  const client = connect({ endpoints: [a.url, b.url] });
  for (let i = 0; i < 3; i += 1) await client.get(KEY);
  expect([a.requests.length, b.requests.length]).toEqual([3, 0]);
});

describe('a client fails over to the next member and stays with it when the first one', () => {
  test.each<[string, () => Promise<string>]>([
    ['refuses the connection', closedEndpoint],
    ['closes the connection', url(refuse)],
    ['does not answer', url(silent)],
    ['has no quorum', url(noQuorum)],
    ['has no leader', url(answer(rawAnswer(500, failed(301))))],
    ['is a proxy without a server', url(badGateway)],
    ['has v2 disabled', url(v2Disabled)],
    ['is a web server', url(answer(rawAnswer(200, '<html>Welcome</html>', {})))],
    ['drops X-Etcd-Index', url(answer(rawAnswer(200, got(KEY), {})))],
    [
      'is of another cluster',
      url(answer(rawAnswer(200, got(KEY), { 'x-etcd-cluster-id': 'abc', 'x-etcd-index': '7' }))),
    ],
    ['answers in TLS', url(answer('\x15\x03\x01\x00\x02\x02\x46'))],
    ['is an SSH server', url(answer('SSH-2.0-OpenSSH_9.2\r\n'))],
    ['does not use TLS although its URL is https', async () => inject('etcd').replace('http:', 'https:')],
    ['has an unknown host name', async () => 'http://no-such-host.invalid:2379'],
  ])('%s', async (_, first) => {
    const b = await serve(good);
    const expectedClusterId = 'cdf818194e3a8c32';
    const client = connect({ endpoints: [await first(), b.url], readTimeout: 0.5, expectedClusterId });
    for (let i = 1; i <= 3; i += 1) {
      expect((await client.get(KEY)).node.key).toBe(KEY);
      expect(b.requests.length).toBe(i);
    }
  });
});

test('a member is never dropped: it is asked again when the other members fail', async () => {
  const a = await serve(inTurn(badGateway, good));
  const b = await serve(inTurn(good, badGateway, good));
  const client = connect({ endpoints: [a.url, b.url] });
  const asked = async () => {
    await client.get(KEY);
    return [a.requests.length, b.requests.length];
  };
  expect(await asked()).toEqual([1, 1]);
  expect(await asked()).toEqual([2, 2]);
  expect(await asked()).toEqual([3, 2]);
});

test('after a call without any answer, the next call asks all members again', async () => {
  const a = await serve(inTurn(badGateway, badGateway, good));
  const b = await serve(badGateway);
  const client = connect({ endpoints: [a.url, b.url] });
  await rejection(client.get(KEY), errors.EtcdConnectionFailed);
  await rejection(client.get(KEY), errors.EtcdConnectionFailed);
  expect([a.requests.length, b.requests.length]).toEqual([2, 2]);
  await client.get(KEY);
});

test('simultaneous failures of one member skip only that member', async () => {
  const a = await serve(badGateway);
  const [b, c] = [await serve(good), await serve(good)];
  const client = connect({ endpoints: [a.url, b.url, c.url] });
  await Promise.all(Array.from({ length: 8 }, () => client.get(KEY)));
  await client.get(KEY);
  expect([a.requests.length, b.requests.length, c.requests.length]).toEqual([8, 9, 0]);
});

test('a late failure does not make clients return to a failed member', async () => {
  const a = await serve(inTurn(silent, badGateway));
  const b = await serve(inTurn(badGateway, good));
  const c = await serve(good);
  const client = connect({ endpoints: [a.url, b.url, c.url], readTimeout: 0.5 });
  const late = client.get(KEY);
  await a.nextRequest();
  await client.get(KEY);
  await late;
  await client.get(KEY);
  expect([a.requests.length, b.requests.length, c.requests.length]).toEqual([2, 1, 3]);
});

test('`attemptTimeout` limits an attempt, but never beyond `readTimeout`', async () => {
  const [a, b] = [await serve(silent), await serve(good)];
  const longTimeout = connect({ endpoints: [a.url, b.url], readTimeout: 3600 });
  expect((await longTimeout.get(KEY, { attemptTimeout: 0.1 })).node.key).toBe(KEY);
  const shortTimeout = connect({ endpoints: [a.url, b.url], readTimeout: 0.1 });
  expect((await shortTimeout.get(KEY, { attemptTimeout: 3600 })).node.key).toBe(KEY);
});

describe('when no member can answer', () => {
  test('the error lists the failure of each member, in order', async () => {
    const endpoints = [
      await closedEndpoint(),
      ...(await Promise.all([silent, noQuorum, v2Disabled].map((h) => url(h)()))),
    ];
    const error = await rejection(connect({ endpoints, readTimeout: 0.5 }).get(KEY), errors.EtcdConnectionFailed);
    expect(error.failures.map(({ endpoint }) => endpoint)).toEqual(endpoints);
    expect(error.failures.map((failure) => failure.error)).toEqual([
      expect.objectContaining({ message: expect.stringContaining('ECONNREFUSED'), outcomeUnknown: false }),
      expect.objectContaining({ message: 'no answer in 0.5 s', outcomeUnknown: true }),
      expect.objectContaining({ errorCode: 300, outcomeUnknown: true }),
      expect.objectContaining({ code: 'ETCD_UNUSABLE_ANSWER', outcomeUnknown: false }),
    ]);
    for (const endpoint of endpoints) expect(error.message.split(`${endpoint}: `)).toHaveLength(2);
    expect(error.outcomeUnknown).toBe(true);
  });

  test('a single member’s error keeps its class and fields, and its message names the member', async () => {
    const endpoint = await url(noQuorum)();
    const error = await rejection(connect({ endpoints: endpoint }).get(KEY), errors.EtcdException);
    expect(error).toMatchObject({ errorCode: 300, index: 6, httpStatus: 500, cause: '/x', outcomeUnknown: true });
    expect(error.message).toBe(`${endpoint}: Raft Internal Error (/x)`);
    expect(error.failures).toEqual([{ endpoint, error: expect.objectContaining({ errorCode: 300 }) }]);
  });

  test('the printed error names each member once', async () => {
    const endpoints = [await closedEndpoint(), await closedEndpoint()];
    const error = await rejection(connect({ endpoints }).get(KEY), errors.EtcdConnectionFailed);
    for (const endpoint of endpoints) expect(inspect(error).split(endpoint)).toHaveLength(2);
    expect(inspect(error).split('ECONNREFUSED')).toHaveLength(3);
    expect(error.failures.map(({ endpoint }) => endpoint)).toEqual(endpoints);
  });

  test('a single refused connection is reported with its cause, and has a known outcome', async () => {
    const endpoint = await closedEndpoint();
    const error = await rejection(connect({ endpoints: endpoint }).get(KEY), errors.EtcdConnectionFailed);
    expect(error.message).toMatch(`${endpoint}: connect ECONNREFUSED`);
    expect(error.outcomeUnknown).toBe(false);
    expect(error.cause).toBeUndefined();
    expect(error.failures[0]?.error.cause).toMatchObject({ code: 'ECONNREFUSED' });
  });

  test('if all members fail permanently for one reason, the error has that class', async () => {
    const endpoints = await Promise.all([url(v2Disabled)(), url(v2Disabled)()]);
    const error = await rejection(connect({ endpoints }).get(KEY), errors.EtcdUnusableAnswer);
    expect(error.failures.map(({ endpoint }) => endpoint)).toEqual(endpoints);
    expect(error.message).toContain('--enable-v2');
    expect(errors.isTransient(error)).toBe(false);
  });

  test('members without a quorum cause EtcdConnectionFailed', async () => {
    const endpoints = await Promise.all([url(noQuorum)(), url(noQuorum)()]);
    const error = await rejection(connect({ endpoints }).get(KEY), errors.EtcdConnectionFailed);
    expect(error.outcomeUnknown).toBe(true);
  });
});

test.each([100, 101, 102, 104, 105, 107, 108, 110, 203, 400, 401])(
  'no other member is asked after etcd’s code %i',
  async (code) => {
    const [a, b] = [await serve(answer(rawAnswer(400, failed(code)))), await serve(good)];
    const client = connect({ endpoints: [a.url, b.url] });
    await expect(client.get(KEY)).rejects.toMatchObject({ errorCode: code, failures: [] });
    await expect(client.get(KEY)).rejects.toMatchObject({ errorCode: code });
    expect([a.requests.length, b.requests.length]).toEqual([2, 0]);
  },
);
