import nock from 'nock';
import { expect, test } from 'vitest';
import * as errors from '../../src/errors.ts';
import { useBeatClock } from '../support/beat-clock.ts';
import { connect, rejection } from '../support/clients.ts';
import { useNock } from '../support/nock.ts';
import { ANSWER_HEADERS, failed, file, versionBody } from '../support/v2-answers.ts';

const A = 'http://a.test:2379';
const B = 'http://b.test:2379';
const KEY = '/_locks/x/00000000000000000004';
const REFRESH = 'ttl=60&prevValue=u1&prevIndex=4&refresh=true';
const PLAIN = 'value=u1&ttl=60&prevValue=u1&prevIndex=4';
const options = { prevValue: 'u1', prevIndex: 4, ttl: 60 };

// A renewal waits half a second for the version.
useBeatClock();

useNock();

const reportsVersion = (origin: string, version: string | object, status = 200) =>
  nock(origin).get('/version').reply(status, version);

/** Expects one renewal with exactly this form, and answers it. */
const expectsRenewal = (origin: string, form: string) =>
  nock(origin)
    .put(`/v2/keys${KEY}`, form)
    .reply(200, { action: 'compareAndSwap', node: file(KEY, { modifiedIndex: 9, ttl: 60 }) }, ANSWER_HEADERS);

test.each([
  ['2.3.0', REFRESH],
  ['3.0.0', REFRESH],
  ['3.4.0', REFRESH],
  ['2.2.0', PLAIN],
  ['2.0.0', PLAIN],
  ['not_decided', PLAIN],
])('a cluster of version %s gets the renewal %s', async (cluster, form) => {
  reportsVersion(A, versionBody(cluster));
  expectsRenewal(A, form);
  expect(await connect({ endpoints: A }).renew(KEY, options)).toMatchObject({ node: { modifiedIndex: 9 }, member: A });
  expect(nock.isDone()).toBe(true);
});

test.each<[string, string | object, number]>([
  ['answers with a version in plain text', 'etcd 0.4.9', 200],
  ['does not report a version', '404 page not found\n', 404],
  ['answers with something else', '<html>', 200],
  ['is behind a proxy that refuses the version request', '', 403],
])('a member that %s gets no refresh, which could erase the value', async (_, version, status) => {
  reportsVersion(A, version, status);
  expectsRenewal(A, PLAIN);
  await connect({ endpoints: A }).renew(KEY, options);
  expect(nock.isDone()).toBe(true);
});

test('the version is requested once as long as the member stays the same', async () => {
  reportsVersion(A, versionBody('3.4.0'));
  const client = connect({ endpoints: A });
  for (let i = 0; i < 3; i += 1) {
    expectsRenewal(A, REFRESH);
    await client.renew(KEY, options);
  }
  expect(nock.isDone()).toBe(true);
});

test('the version is requested again as long as the cluster has not decided on it', async () => {
  const client = connect({ endpoints: A });
  for (const [cluster, form] of [
    ['not_decided', PLAIN],
    ['3.4.0', REFRESH],
  ] as const) {
    reportsVersion(A, versionBody(cluster));
    expectsRenewal(A, form);
    await client.renew(KEY, options);
  }
  expect(nock.isDone()).toBe(true);
});

test('simultaneous renewals share one version request', async () => {
  reportsVersion(A, versionBody('3.4.0'));
  expectsRenewal(A, REFRESH);
  expectsRenewal(A, REFRESH);
  const client = connect({ endpoints: A });
  await Promise.all([client.renew(KEY, options), client.renew(KEY, options)]);
  expect(nock.isDone()).toBe(true);
});

test('the version is requested again after a change of member', async () => {
  const client = connect({ endpoints: [A, B] });
  reportsVersion(A, versionBody('3.4.0'));
  expectsRenewal(A, REFRESH);
  await client.renew(KEY, options);
  nock(A).put(`/v2/keys${KEY}`).reply(500, failed(300));
  expectsRenewal(B, PLAIN);
  await client.renew(KEY, options);
  reportsVersion(B, versionBody('3.4.0'));
  expectsRenewal(B, REFRESH);
  await client.renew(KEY, options);
  nock(B).put(`/v2/keys${KEY}`).reply(503, '');
  expectsRenewal(A, PLAIN);
  await client.renew(KEY, options);
  reportsVersion(A, versionBody('2.2.0'));
  expectsRenewal(A, PLAIN);
  await client.renew(KEY, options);
  expect(nock.isDone()).toBe(true);
});

test('a failed version request leads to a plain write, and is repeated with the next renewal', async () => {
  nock(A).get('/version').reply(503, '');
  expectsRenewal(A, PLAIN);
  nock(A).get('/version').replyWithError('socket hang up');
  expectsRenewal(A, PLAIN);
  reportsVersion(A, versionBody('3.4.0'));
  expectsRenewal(A, REFRESH);
  const client = connect({ endpoints: [A, B] });
  for (let renewals = 0; renewals < 3; renewals += 1) await client.renew(KEY, options);
  expect(nock.isDone()).toBe(true);
});

test('a plain write removes the expiry, without a version request', async () => {
  expectsRenewal(A, 'value=u1&ttl=&prevValue=u1&prevIndex=4');
  await connect({ endpoints: A }).renew(KEY, { ...options, ttl: null });
  expect(nock.isDone()).toBe(true);
});

test.each<[string, number, object, typeof errors.EtcdException]>([
  ['has changed', 412, failed(101), errors.EtcdCompareFailed],
  ['is gone', 404, failed(100), errors.EtcdKeyNotFound],
])('a key that %s is not renewed', async (_, status, body, ErrorClass) => {
  reportsVersion(A, versionBody('3.4.0'));
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
