import { inspect } from 'node:util';
import nock from 'nock';
import { describe, expect, test } from 'vitest';
import * as errors from '../../src/errors.ts';
import { connect, rejection } from '../support/clients.ts';
import { debugOutput } from '../support/debug-output.ts';
import { useNock } from '../support/nock.ts';
import { ANSWER_HEADERS, CLUSTER, failed, file, got } from '../support/v2-answers.ts';

const ORIGIN = 'http://etcd.test:2379';
const KEY = '/_locks/x/00000000000000000004';
const NOT_FOUND = '404 page not found\n';
const PLAIN = { 'content-type': 'text/plain; charset=utf-8' };

useNock();

/** Sets etcd's answer to the next read of the key. */
const answers = (status: number, body: string | object, headers: Record<string, string> = ANSWER_HEADERS) =>
  nock(ORIGIN).get(`/v2/keys${KEY}`).reply(status, body, headers);

const client = (options: Parameters<typeof connect>[0] = {}) => connect({ endpoints: ORIGIN, ...options });

describe('an answer of etcd', () => {
  test('to a read is a snapshot, and the client remembers its cluster id', async () => {
    answers(200, got(KEY, { ttl: 60 }));
    const etcd = client();
    expect(etcd.clusterId).toBeUndefined();
    const before = performance.now();
    const snapshot = await etcd.get(KEY);
    expect(snapshot).toMatchObject({ index: 7, clusterId: CLUSTER, node: { key: KEY, ttl: 60 } });
    expect(snapshot.sentAt).toBeGreaterThanOrEqual(before);
    expect(snapshot.sentAt).toBeLessThanOrEqual(performance.now());
    expect(etcd.clusterId).toBe(CLUSTER);
  });

  test('to an append is the new entry', async () => {
    const node = file(KEY, { ttl: 60 });
    nock(ORIGIN)
      .post('/v2/keys/_locks/x', 'value=u1&ttl=60')
      .matchHeader('content-type', 'application/x-www-form-urlencoded')
      .reply(201, { action: 'create', node }, ANSWER_HEADERS);
    expect(await client().createInOrder('/_locks/x', 'u1', { ttl: 60 })).toMatchObject({ action: 'create', node });
  });

  test('to an append without a value and a TTL is an entry; the request has an empty form', async () => {
    nock(ORIGIN)
      .post('/v2/keys/_locks/x', '')
      .matchHeader('content-type', 'application/x-www-form-urlencoded')
      .reply(201, { action: 'create', node: file(KEY) }, ANSWER_HEADERS);
    expect(await client().createInOrder('/_locks/x', undefined)).toMatchObject({
      action: 'create',
      node: { key: KEY },
    });
  });

  test('to a removal has the previous node', async () => {
    const node = { key: KEY, createdIndex: 4, modifiedIndex: 8 };
    nock(ORIGIN)
      .delete(`/v2/keys${KEY}`)
      .query({ prevValue: 'u1', prevIndex: '4' })
      .reply(200, { action: 'compareAndDelete', node, prevNode: file(KEY) }, ANSWER_HEADERS);
    const change = await client().delete(KEY, { prevValue: 'u1', prevIndex: 4 });
    expect(change).toMatchObject({ action: 'compareAndDelete', prevNode: { value: 'u1' } });
  });

  test('may be a list of machines, a list of members or a version', async () => {
    const member = { id: 'a1', name: 'm1', peerURLs: ['http://a:2380'], clientURLs: ['http://a:2379'] };
    nock(ORIGIN).get('/v2/machines').reply(200, 'http://a:2379, http://b:2379');
    nock(ORIGIN)
      .get('/v2/members')
      .reply(200, { members: [member] });
    nock(ORIGIN).get('/version').reply(200, { etcdserver: '3.4.23', etcdcluster: '3.4.0' });
    const etcd = client();
    expect(await etcd.machines()).toEqual(['http://a:2379', 'http://b:2379']);
    expect(await etcd.members()).toEqual([member]);
    expect(await etcd.version()).toEqual({ server: '3.4.23', cluster: '3.4.0' });
  });

  test.each<[string, number, ReturnType<typeof failed>, typeof errors.EtcdException, boolean]>([
    ['a missing key', 404, failed(100), errors.EtcdKeyNotFound, false],
    ['insufficient permissions', 401, failed(110), errors.EtcdInsufficientPermissions, false],
    ['an unsettled request', 500, failed(300), errors.EtcdException, true],
    ['no leader', 500, failed(301), errors.EtcdLeaderElectionInProgress, true],
    ['a cleared watcher', 400, failed(400), errors.EtcdWatcherCleared, false],
    ['a cleared history', 400, failed(401), errors.EtcdEventIndexCleared, false],
  ])('with %s rejects the call', async (_, status, body, ErrorClass, outcomeUnknown) => {
    answers(status, body);
    const error = await rejection(client().get(KEY), ErrorClass);
    expect(error).toMatchObject({
      errorCode: body.errorCode,
      httpStatus: status,
      index: 6,
      cause: '/x',
      outcomeUnknown,
    });
  });
});

describe('an answer that is not from etcd’s v2 API', () => {
  test('explains how to enable it, if the server has it disabled', async () => {
    answers(404, NOT_FOUND, PLAIN);
    const error = await rejection(client().get(KEY), errors.EtcdUnusableAnswer);
    expect(error.message).toContain('--enable-v2');
    expect(error.message).toContain(ORIGIN);
    expect(error).toMatchObject({ httpStatus: 404, outcomeUnknown: false });
  });

  test('with status 200 is shown in part, and the outcome of a write is unknown', async () => {
    answers(200, '<html><body>Welcome</body></html>', { 'content-type': 'text/html' });
    const error = await rejection(client().get(KEY), errors.EtcdUnusableAnswer);
    expect(error.message).toContain('<html><body>Welcome</body></html>');
    expect(error).toMatchObject({ httpStatus: 200, outcomeUnknown: true });
  });

  test('with status 502 is a failed connection', async () => {
    answers(502, '<html>Bad Gateway</html>');
    const error = await rejection(client().get(KEY), errors.EtcdConnectionFailed);
    expect(error.message).toBe(`${ORIGIN}: answered 502: "<html>Bad Gateway</html>"`);
    expect(error).toMatchObject({ httpStatus: 502, outcomeUnknown: true });
    expect(error.failures.map(({ endpoint }) => endpoint)).toEqual([ORIGIN]);
  });

  test.each(['', '{"message":"Insufficient credentials"}', '<html>'])(
    'with status 401 and the body %j means insufficient permissions',
    async (body) => {
      answers(401, body);
      const error = await rejection(client().get(KEY), errors.EtcdInsufficientPermissions);
      expect(error.httpStatus).toBe(401);
      expect(error.message).toContain(`${ORIGIN}: no access to ${KEY} (no user name sent): `);
    },
  );

  test('a lost connection is reported with its cause, and the outcome of a write is unknown', async () => {
    const reset = Object.assign(new Error('read ECONNRESET'), { code: 'ECONNRESET' });
    nock(ORIGIN).get(`/v2/keys${KEY}`).replyWithError(reset);
    const error = await rejection(client().get(KEY), errors.EtcdConnectionFailed);
    expect(error.message).toContain('ECONNRESET');
    expect(error.outcomeUnknown).toBe(true);
  });
});

describe('an answer of another cluster', () => {
  test('than expected is refused, and the outcome of a write is unknown', async () => {
    answers(200, got(KEY));
    const etcd = client({ expectedClusterId: 'abc123' });
    const error = await rejection(etcd.get(KEY), errors.EtcdClusterIdChanged);
    expect(error.message).toContain(`expected cluster abc123, but cluster ${CLUSTER} answered`);
    expect(error.outcomeUnknown).toBe(true);
    expect(etcd.clusterId).toBeUndefined();
  });

  test('than expected is refused, even if it is an error', async () => {
    answers(404, failed(100));
    await rejection(client({ expectedClusterId: 'abc123' }).get(KEY), errors.EtcdClusterIdChanged);
  });

  test('is accepted if that is the expected one', async () => {
    answers(200, got(KEY));
    await client({ expectedClusterId: CLUSTER }).get(KEY);
  });

  test('changes the client’s cluster id if none is expected', async () => {
    const etcd = client();
    answers(200, got(KEY));
    await etcd.get(KEY);
    answers(200, got(KEY), { ...ANSWER_HEADERS, 'x-etcd-cluster-id': 'abc123' });
    expect(await etcd.get(KEY)).toMatchObject({ clusterId: 'abc123' });
    expect(etcd.clusterId).toBe('abc123');
  });
});

describe('the prefixes', () => {
  test('are options: the version prefix for paths, the lock prefix for queues', async () => {
    nock(ORIGIN).get(`/etcd/v2/keys${KEY}`).reply(200, got(KEY), ANSWER_HEADERS);
    nock(ORIGIN).get('/etcd/v2/machines').reply(200, 'http://a:2379');
    nock(ORIGIN).get('/version').reply(200, 'etcd 0.4.9');
    const etcd = client({ versionPrefix: '/etcd/v2', lockPrefix: '/my/locks' });
    expect(etcd.lockPrefix).toBe('/my/locks');
    expect((await etcd.get(KEY)).node.key).toBe(KEY);
    expect(await etcd.machines()).toEqual(['http://a:2379']);
    expect(await etcd.version()).toEqual({ server: '0.4.9', cluster: undefined });
  });
});

describe('basic authentication', () => {
  const secret = { username: 'root', password: 'top-secret' };
  const header = `Basic ${Buffer.from('root:top-secret').toString('base64')}`;

  test('is sent with every request', async () => {
    nock(ORIGIN, { reqheaders: { authorization: header } })
      .get(`/v2/keys${KEY}`)
      .reply(200, got(KEY), ANSWER_HEADERS)
      .post('/v2/keys/_locks/x')
      .reply(201, { action: 'create', node: file(KEY) }, ANSWER_HEADERS);
    const etcd = client(secret);
    await etcd.get(KEY);
    await etcd.createInOrder('/_locks/x', 'u1');
  });

  test('is not sent without a user', async () => {
    nock(ORIGIN, { badheaders: ['authorization'] })
      .get(`/v2/keys${KEY}`)
      .reply(200, got(KEY), ANSWER_HEADERS);
    await client().get(KEY);
  });

  test('appears neither in debug output nor in an error', async () => {
    const { lines, result } = await debugOutput(async () => {
      const etcd = client(secret);
      answers(200, got(KEY));
      await etcd.get(KEY);
      answers(401, failed(110));
      const refused = await rejection(etcd.get(KEY), errors.EtcdInsufficientPermissions);
      nock(ORIGIN).get(`/v2/keys${KEY}`).replyWithError(new Error('broken'));
      const broken = await rejection(etcd.get(KEY), errors.EtcdConnectionFailed);
      return [refused, broken].map((error) => inspect(error, { depth: null, showHidden: true }));
    });
    expect(lines.join('\n')).toContain(`GET ${ORIGIN}/v2/keys${KEY}: 200`);
    for (const leak of [secret.password, header, header.slice(6)])
      expect([...lines, ...result].join('\n')).not.toContain(leak);
  });
});
