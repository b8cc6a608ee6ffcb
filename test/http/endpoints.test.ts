import { describe, expect, inject, test } from 'vitest';
import * as errors from '../../src/errors.ts';
import { closedEndpoint, connect, rejection, serve } from '../support/clients.ts';
import { answer, inTurn, refuse, silent, type TcpHandler } from '../support/tcp-server.ts';
import { failed, got, rawAnswer } from '../support/v2-answers.ts';

const KEY = '/_locks/x/00000000000000000004';
const good = answer(rawAnswer(200, got(KEY)));
const noQuorum = answer(rawAnswer(500, failed(300, 'Raft Internal Error')));
const switchedOff = answer(rawAnswer(404, '404 page not found\n', { 'content-type': 'text/plain' }));
const badGateway = answer(rawAnswer(502, '<html>', {}));

const url = (handler: TcpHandler) => async () => (await serve(handler)).url;

test('a client stays with the member that answers', async () => {
  const [a, b] = [await serve(good), await serve(good)];
  const client = connect({ endpoints: [a.url, b.url] });
  for (let i = 0; i < 3; i += 1) await client.get(KEY);
  expect([a.requests.length, b.requests.length]).toEqual([3, 0]);
});

describe('a client goes to the next member, and stays there, when the first', () => {
  test.each<[string, () => Promise<string>]>([
    ['refuses the connection', closedEndpoint],
    ['ends the connection', url(refuse)],
    ['is silent', url(silent)],
    ['has no quorum', url(noQuorum)],
    ['has no leader', url(answer(rawAnswer(500, failed(301))))],
    ['is a proxy without a server', url(badGateway)],
    ['has v2 switched off', url(switchedOff)],
    ['is a web server', url(answer(rawAnswer(200, '<html>Welcome</html>', {})))],
    ['drops X-Etcd-Index', url(answer(rawAnswer(200, got(KEY), {})))],
    [
      'is of another cluster',
      url(answer(rawAnswer(200, got(KEY), { 'x-etcd-cluster-id': 'abc', 'x-etcd-index': '7' }))),
    ],
    ['answers in TLS', url(answer('\x15\x03\x01\x00\x02\x02\x46'))],
    ['is an SSH server', url(answer('SSH-2.0-OpenSSH_9.2\r\n'))],
    ['is asked in TLS and does not speak it', async () => inject('etcd').replace('http:', 'https:')],
    ['has a name that is not known', async () => 'http://no-such-host.invalid:2379'],
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

test('a member is never dropped: it is asked again when the others fail', async () => {
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

test('after a round without any answer the next call asks all of them again', async () => {
  const a = await serve(inTurn(badGateway, badGateway, good));
  const b = await serve(badGateway);
  const client = connect({ endpoints: [a.url, b.url] });
  await rejection(client.get(KEY), errors.EtcdConnectionFailed);
  await rejection(client.get(KEY), errors.EtcdConnectionFailed);
  expect([a.requests.length, b.requests.length]).toEqual([2, 2]);
  await client.get(KEY);
});

test('calls that fail at the same time move on by one member, not by one each', async () => {
  const a = await serve(badGateway);
  const [b, c] = [await serve(good), await serve(good)];
  const client = connect({ endpoints: [a.url, b.url, c.url] });
  await Promise.all(Array.from({ length: 8 }, () => client.get(KEY)));
  await client.get(KEY);
  expect([a.requests.length, b.requests.length, c.requests.length]).toEqual([8, 9, 0]);
});

test('a call that fails late does not bring back the member that others have moved on from', async () => {
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

test('an attempt gets its own time, but no more than the client’s', async () => {
  const [a, b] = [await serve(silent), await serve(good)];
  const patient = connect({ endpoints: [a.url, b.url], readTimeout: 3600 });
  expect((await patient.get(KEY, { attemptTimeout: 0.1 })).node.key).toBe(KEY);
  const hasty = connect({ endpoints: [a.url, b.url], readTimeout: 0.1 });
  expect((await hasty.get(KEY, { attemptTimeout: 3600 })).node.key).toBe(KEY);
});

describe('when no member gives an answer', () => {
  test('the error keeps what each failed with, in the order they were asked', async () => {
    const endpoints = [
      await closedEndpoint(),
      ...(await Promise.all([silent, noQuorum, switchedOff].map((h) => url(h)()))),
    ];
    const error = await rejection(connect({ endpoints, readTimeout: 0.5 }).get(KEY), errors.EtcdConnectionFailed);
    expect(error.failures.map(({ endpoint }) => endpoint)).toEqual(endpoints);
    expect(error.failures.map((failure) => failure.error)).toEqual([
      expect.objectContaining({ message: expect.stringContaining('ECONNREFUSED'), outcomeUnknown: false }),
      expect.objectContaining({ message: 'no answer within 0.5 s', outcomeUnknown: true }),
      expect.objectContaining({ errorCode: 300, outcomeUnknown: true }),
      expect.objectContaining({ code: 'ETCD_UNUSABLE_ANSWER', outcomeUnknown: false }),
    ]);
    for (const endpoint of endpoints) expect(error.message).toContain(`${endpoint}: `);
    expect(error.cause).toBeInstanceOf(AggregateError);
    expect((error.cause as AggregateError).errors).toEqual(error.failures.map((failure) => failure.error));
    expect(error.outcomeUnknown).toBe(true);
  });

  test('a single member’s error is told as it is, with the member’s name', async () => {
    const endpoint = await url(noQuorum)();
    const error = await rejection(connect({ endpoints: endpoint }).get(KEY), errors.EtcdException);
    expect(error).toMatchObject({ errorCode: 300, index: 6, status: 500, cause: '/x', outcomeUnknown: true });
    expect(error.message).toBe(`${endpoint}: Raft Internal Error (/x)`);
    expect(error.failures).toEqual([{ endpoint, error: expect.objectContaining({ errorCode: 300 }) }]);
  });

  test('a single refused connection surely did nothing, and says why', async () => {
    const endpoint = await closedEndpoint();
    const error = await rejection(connect({ endpoints: endpoint }).get(KEY), errors.EtcdConnectionFailed);
    expect(error.message).toMatch(`${endpoint}: connect ECONNREFUSED`);
    expect(error.outcomeUnknown).toBe(false);
    expect(error.cause).toMatchObject({ code: 'ECONNREFUSED' });
  });

  test('the members’ common reason is the error’s, where it is a lasting one', async () => {
    const endpoints = await Promise.all([url(switchedOff)(), url(switchedOff)()]);
    const error = await rejection(connect({ endpoints }).get(KEY), errors.EtcdUnusableAnswer);
    expect(error.failures.map(({ endpoint }) => endpoint)).toEqual(endpoints);
    expect(error.message).toContain('--enable-v2');
    expect(error.cause).toBeInstanceOf(AggregateError);
    expect(errors.isTransient(error)).toBe(false);
  });

  test('members without a quorum are an outage that may pass', async () => {
    const endpoints = await Promise.all([url(noQuorum)(), url(noQuorum)()]);
    const error = await rejection(connect({ endpoints }).get(KEY), errors.EtcdConnectionFailed);
    expect(error.outcomeUnknown).toBe(true);
  });
});

test.each([100, 101, 102, 104, 105, 107, 108, 110, 203, 400, 401])(
  'etcd’s code %i is an answer: no other member is asked',
  async (code) => {
    const [a, b] = [await serve(answer(rawAnswer(400, failed(code)))), await serve(good)];
    const client = connect({ endpoints: [a.url, b.url] });
    await expect(client.get(KEY)).rejects.toMatchObject({ errorCode: code, failures: [] });
    await expect(client.get(KEY)).rejects.toMatchObject({ errorCode: code });
    expect([a.requests.length, b.requests.length]).toEqual([2, 0]);
  },
);
