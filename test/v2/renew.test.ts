import nock from 'nock';
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest';
import * as errors from '../../src/errors.ts';
import { connect, rejection } from '../support/clients.ts';
import { ANSWER_HEADERS, failed, file, versionBody } from '../support/v2-answers.ts';

const A = 'http://a.test:2379';
const B = 'http://b.test:2379';
const KEY = '/_locks/x/00000000000000000004';
const SILENT = 'ttl=60&prevValue=u1&prevIndex=4&refresh=true';
const PLAIN = 'value=u1&ttl=60&prevValue=u1&prevIndex=4';
const options = { prevValue: 'u1', prevIndex: 4, ttl: 60 };

beforeAll(() => {
  nock.disableNetConnect();
});

afterEach(() => {
  nock.cleanAll();
});

afterAll(() => {
  nock.enableNetConnect();
  nock.restore();
});

const tells = (origin: string, version: string | object, status = 200) =>
  nock(origin).get('/version').reply(status, version);

/** Takes one renewal, if it has exactly this form. */
const takes = (origin: string, form: string) =>
  nock(origin)
    .put(`/v2/keys${KEY}`, form)
    .reply(200, { action: 'compareAndSwap', node: file(KEY, { modifiedIndex: 9, ttl: 60 }) }, ANSWER_HEADERS);

test.each([
  ['2.3.0', SILENT],
  ['3.0.0', SILENT],
  ['3.4.0', SILENT],
  ['2.2.0', PLAIN],
  ['2.0.0', PLAIN],
  ['not_decided', PLAIN],
])('a cluster of version %s is asked with %s', async (cluster, form) => {
  tells(A, versionBody(cluster));
  takes(A, form);
  expect(await connect({ endpoints: A }).renew(KEY, options)).toMatchObject({ node: { modifiedIndex: 9 } });
  expect(nock.isDone()).toBe(true);
});

test.each<[string, string | object, number]>([
  ['tells a version in text', 'etcd 0.4.9', 200],
  ['hides its version', '404 page not found\n', 404],
  ['tells something else', '<html>', 200],
  ['is asked through a proxy that forbids the question', '', 403],
])('a member that %s gets no refresh, which would wipe the value there', async (_, version, status) => {
  tells(A, version, status);
  takes(A, PLAIN);
  await connect({ endpoints: A }).renew(KEY, options);
  expect(nock.isDone()).toBe(true);
});

test('the version is asked for once as long as the member stays the same', async () => {
  tells(A, versionBody('3.4.0'));
  const client = connect({ endpoints: A });
  for (let i = 0; i < 3; i += 1) {
    takes(A, SILENT);
    await client.renew(KEY, options);
  }
  expect(nock.isDone()).toBe(true);
});

test('renewals at the same time ask for the version together', async () => {
  tells(A, versionBody('3.4.0'));
  takes(A, SILENT);
  takes(A, SILENT);
  const client = connect({ endpoints: A });
  await Promise.all([client.renew(KEY, options), client.renew(KEY, options)]);
  expect(nock.isDone()).toBe(true);
});

test('the version is asked for again after a change of member', async () => {
  const client = connect({ endpoints: [A, B] });
  tells(A, versionBody('3.4.0'));
  takes(A, SILENT);
  await client.renew(KEY, options);
  nock(A).put(`/v2/keys${KEY}`).reply(500, failed(300));
  takes(B, PLAIN);
  await client.renew(KEY, options);
  tells(B, versionBody('3.4.0'));
  takes(B, SILENT);
  await client.renew(KEY, options);
  nock(B).put(`/v2/keys${KEY}`).reply(503, '');
  takes(A, PLAIN);
  await client.renew(KEY, options);
  tells(A, versionBody('2.2.0'));
  takes(A, PLAIN);
  await client.renew(KEY, options);
  expect(nock.isDone()).toBe(true);
});

test('a member that fails to tell its version gets a plain write, and is asked again with the next renewal', async () => {
  nock(A).get('/version').reply(503, '');
  takes(A, PLAIN);
  nock(A).get('/version').replyWithError('socket hang up');
  takes(A, PLAIN);
  tells(A, versionBody('3.4.0'));
  takes(A, SILENT);
  const client = connect({ endpoints: [A, B] });
  for (let renewals = 0; renewals < 3; renewals += 1) await client.renew(KEY, options);
  expect(nock.isDone()).toBe(true);
});

test('an expiry is taken away by a plain write, without asking for a version', async () => {
  takes(A, 'value=u1&ttl=&prevValue=u1&prevIndex=4');
  await connect({ endpoints: A }).renew(KEY, { ...options, ttl: null });
  expect(nock.isDone()).toBe(true);
});

test.each<[string, number, object, typeof errors.EtcdException]>([
  ['has changed', 412, failed(101), errors.EtcdCompareFailed],
  ['is gone', 404, failed(100), errors.EtcdKeyNotFound],
])('a key that %s is not renewed', async (_, status, body, ErrorClass) => {
  tells(A, versionBody('3.4.0'));
  nock(A).put(`/v2/keys${KEY}`).reply(status, body, ANSWER_HEADERS);
  const error = await rejection(connect({ endpoints: A }).renew(KEY, options), ErrorClass);
  expect(error.outcomeUnknown).toBe(false);
});

test.each<[string, object, string]>([
  ['an empty value', { prevValue: '' }, 'prevValue must not be empty'],
  ['a TTL of 1.5', { ttl: 1.5 }, 'ttl must be an integer ≥ 1, got 1.5'],
  ['a TTL of 0', { ttl: 0 }, 'ttl must be an integer ≥ 1, got 0'],
  ['an index of -1', { prevIndex: -1 }, 'prevIndex must be an integer ≥ 1, got -1'],
])('a renewal with %s is refused before any request', async (_, wrong, message) => {
  const error = await rejection(connect({ endpoints: A }).renew(KEY, { ...options, ...wrong }), RangeError);
  expect(error.message).toContain(message);
});
